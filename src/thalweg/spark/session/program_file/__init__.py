"""A session as a file: `thalweg run FILE` reads it, checks all of it, and runs it."""
