"""The experiments of bcs-change-detection-2012, one a file, and those that go beyond it."""
