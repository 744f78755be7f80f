"""`tw.where`, `tw.stream` and `tw.condition`: adaptive filters."""
