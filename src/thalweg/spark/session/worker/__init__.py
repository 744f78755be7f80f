"""What a session runs in Spark's Python workers."""
