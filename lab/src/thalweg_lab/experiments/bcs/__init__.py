"""The experiments of bcs-change-detection-2012, and experiments that go beyond it, one a file."""
