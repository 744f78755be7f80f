"""Stored tables, ready to be looked up in batch by batch: keys and prefixes. Knows Arrow and NumPy, not Spark."""
