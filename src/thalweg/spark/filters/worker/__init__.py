"""The part of `tw.where` that runs in Python workers. Imports no pyspark before a task runs."""
