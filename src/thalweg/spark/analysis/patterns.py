"""Texts in conditions that Spark interprets while a query runs: which of them can never raise.

Knows no Spark: the functions take the literal text of a pattern.
"""

from __future__ import annotations

import re

LONGEST_REGEX = 1000  # characters

# The parts of a regular expression that Python and Java read alike. Back references, possessive repeats, look-around
# and the like are not in the list. A repeated group may overflow Java's stack on a long text, as it does in plain
# Spark: that is no exception, and nothing in Spark catches it.
_ESCAPE = r"\\[dDwWsStnrf.*+?^$|(){}\[\]/\\-]"
_CLASS = rf"\[\^?(?:[^\[\]\\&]|{_ESCAPE})+\]"
_REPEAT = r"(?:[*+?]\??|\{[0-9]{1,2}(?:,[0-9]{1,2})?\})?"
_REGEX = re.compile(
    rf"(?:\(\?i\))?(?:\((?:\?:)?|\){_REPEAT}|\||[\^$]|\\[bB]|(?:{_ESCAPE}|{_CLASS}|[^\\\[\](){{}}*+?|^$]){_REPEAT})*",
    re.DOTALL,
)
# Fields that every timestamp has, and signs between them that need no quotes.
_TIME_FORMAT = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|[-/:_., ])+")


def is_valid_regex(pattern: str) -> bool:
    """Whether a regular expression is well-formed, in Java's syntax as far as Python's is the same.

    >>> is_valid_regex(r"^/api/v[0-9]+/(users|orders)?$"), is_valid_regex("(a|b)*c"), is_valid_regex("[a")
    (True, True, False)
    """
    if len(pattern) > LONGEST_REGEX or not _REGEX.fullmatch(pattern):
        return False
    try:  # where both know the syntax, Python and Java refuse the same patterns
        re.compile(pattern)
    except re.error:
        return False
    return True


def is_valid_like(pattern: str, escape: str) -> bool:
    """Whether the pattern of a LIKE is well-formed: its escape character stands before a wildcard or before itself.

    >>> is_valid_like("100/%", "/"), is_valid_like("a/b", "/"), is_valid_like("a/", "/")
    (True, False, False)
    """
    sign = re.escape(escape)
    return re.fullmatch(rf"(?:[^{sign}]|{sign}[_%{sign}])*", pattern, re.DOTALL) is not None


def is_plain_time_format(pattern: str) -> bool:
    """Whether every timestamp can be written in this format.

    >>> is_plain_time_format("yyyy-MM-dd HH:mm"), is_plain_time_format("MMM"), is_plain_time_format("yyyy-'W'")
    (True, False, False)
    """
    return _TIME_FORMAT.fullmatch(pattern) is not None
