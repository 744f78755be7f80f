"""The live page: what the queries of this user's programs do now, and did before.

Programs write events of their runs to a folder of the user (`event_log.py`, written by `recorder.py`); a server, in the
program or by itself, follows that folder (`store.py`) and shows it (`server.py`). Knows Spark only through
`thalweg.spark.runs` and `thalweg.spark.metrics`, and only in `recorder.py`.
"""
