"""Everything that touches Spark: the only package that imports pyspark."""
