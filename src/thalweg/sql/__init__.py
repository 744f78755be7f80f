"""Continuous queries as text: parsed by sqlglot, checked against the sources of a session, and returned as values."""
