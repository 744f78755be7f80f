"""Names of columns as Spark SQL reads them, with any characters in them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name as Spark reads it: in backticks if it needs them.

    >>> quoted("a b"), quoted("plain")
    ('`a b`', 'plain')
    """
    return name if name.isidentifier() else backticked(name)


def backticked(name: str) -> str:
    """A column's name in backticks, for texts in which a plain name may be a word of SQL."""
    return "`{}`".format(name.replace("`", "``"))
