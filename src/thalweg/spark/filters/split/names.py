"""Names of the parts of a condition: SQL text, as a person would write it."""

from __future__ import annotations

import re
from typing import Any

CAST_OF_NUMBER = re.compile(r"CAST\((-?[0-9.]+)(?:BD|D|L|S|Y)? AS [A-Z]+(?:\([0-9,]+\))?\)")
NUMBER = re.compile(r"\b(-?[0-9]+(?:\.[0-9]+)?)(?:BD|D|L|S|Y)\b")
SIGNS = {"==": "=", "!=": "<>"} | {sign: sign for sign in ("<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")}


def sql_name(sql: str) -> str:
    """Catalyst's SQL text of an expression, without the casts of constants and parentheses that analysis has added.

    >>> sql_name("(score(a) > CAST(0.5BD AS DOUBLE))")
    'score(a) > 0.5'
    >>> sql_name("(a) = (b)")
    '(a) = (b)'
    """
    text = NUMBER.sub(r"\1", CAST_OF_NUMBER.sub(r"\1", sql))
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 and text.startswith("(") else text
    return text


def client_sql(expression: Any) -> str:  # noqa: ANN401 - an expression of a client of Spark Connect
    """SQL text of an expression of Spark Connect, whose own text has operators in front of their operands."""
    name: str = getattr(expression, "_name", "")
    operands = getattr(expression, "_args", ())
    if not name:
        return str(expression)
    texts = [
        f"({client_sql(operand)})" if getattr(operand, "_name", "") in SIGNS else client_sql(operand)
        for operand in operands
    ]
    if name in SIGNS and len(texts) == 2:  # noqa: PLR2004 - both sides
        return f"{texts[0]} {SIGNS[name]} {texts[1]}"
    if name in {"isNull", "isNotNull"}:
        return f"{texts[0]} IS {'NOT ' if name == 'isNotNull' else ''}NULL"
    return f"{name}({', '.join(texts)})"
