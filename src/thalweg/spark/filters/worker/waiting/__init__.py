"""Predicates that wait for a service: one mechanism a file. No file here reads a clock that tests cannot replace."""
