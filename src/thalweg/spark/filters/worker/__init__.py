"""What runs in Python workers. Imports no pyspark before a task runs."""
