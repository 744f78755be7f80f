"""`tw.join`: adaptive multi-way window joins."""
