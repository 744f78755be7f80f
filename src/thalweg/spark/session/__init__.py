"""`tw.Session`: many standing queries over shared streams, run as one streaming query."""
