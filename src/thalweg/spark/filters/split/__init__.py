"""Splits the conditions that a user writes into predicates which can be ordered."""
