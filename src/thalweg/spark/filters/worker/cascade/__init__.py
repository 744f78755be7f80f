"""Cascades: a cheap score decides where it is sure, a costly predicate decides the rest. Knows no Spark."""
