"""Names of the parts of a condition: SQL text, as a person would write it."""

from __future__ import annotations

import re
from typing import Any

from thalweg.spark.identifiers import quoted

QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|`[^`]*`)", re.DOTALL)  # texts and names, whose letters stay as they are
CAST_OF_NUMBER = re.compile(r"CAST\((-?[0-9.]+)(?:BD|D|L|S|Y)? AS [A-Z]+(?:\([0-9,]+\))?\)")
NUMBER = re.compile(r"\b(-?[0-9]+(?:\.[0-9]+)?)(?:BD|D|L|S|Y)\b")
SIGNS = {"==": "=", "!=": "<>", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}
SIGNS |= {sign: sign for sign in ("<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")}


def sql_name(sql: str) -> str:
    """Catalyst's SQL text of an expression, without the casts of constants and parentheses that analysis has added.

    >>> sql_name("(score(a) > CAST(0.5BD AS DOUBLE))")
    'score(a) > 0.5'
    >>> sql_name("(a) = (b)")
    '(a) = (b)'
    >>> sql_name("(size = '10L (')")
    "size = '10L ('"
    """
    parts = QUOTED.split(sql)  # every second part is quoted
    parts[::2] = [NUMBER.sub(r"\1", CAST_OF_NUMBER.sub(r"\1", part)) for part in parts[::2]]
    text, depth = "".join(parts), 0
    parts[1::2] = ["." * len(part) for part in parts[1::2]]
    for place, letter in enumerate("".join(parts)):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 and text.startswith("(") else text
    return text


def client_sql(expression: Any) -> str:  # noqa: ANN401 - an expression of a client of Spark Connect
    """SQL text of an expression of Spark Connect, whose own text has operators in front of their operands."""
    name: str = getattr(expression, "_name", "")
    operands = getattr(expression, "_args", ())
    if hasattr(expression, "_value") and hasattr(expression, "_dataType"):
        return _constant_sql(str(expression), expression._dataType.typeName())  # noqa: SLF001 - no public way
    if hasattr(expression, "_unparsed_identifier"):
        return _column_sql(expression._unparsed_identifier)  # noqa: SLF001 - as above
    if not name:
        return str(expression)
    texts = [
        f"({client_sql(operand)})" if getattr(operand, "_name", "") in SIGNS else client_sql(operand)
        for operand in operands
    ]
    if name in SIGNS and len(texts) == 2:  # noqa: PLR2004 - both sides
        return f"{texts[0]} {SIGNS[name]} {texts[1]}"
    call, first = f"{name}({', '.join(texts)})", texts[0] if texts else ""
    return {
        "isNull": f"{first} IS NULL",
        "isNotNull": f"{first} IS NOT NULL",
        "in": f"{first} IN ({', '.join(texts[1:])})",
        **dict.fromkeys(("not", "!"), f"NOT {first}" if first.startswith("(") else f"NOT ({first})"),
    }.get(name, call)


def _column_sql(written: str) -> str:
    """A column as SQL has it.

    >>> print(_column_sql("user.first name"), _column_sql("`a.b`"))
    user.`first name` `a.b`
    """
    return written if "`" in written else ".".join(map(quoted, written.split(".")))


def _constant_sql(text: str, kind: str) -> str:
    r"""A constant as SQL has it.

    >>> print(_constant_sql("it's", "string"), _constant_sql("2024-05-01", "date"), _constant_sql("True", "boolean"))
    'it\'s' DATE '2024-05-01' true
    """
    if text == "NULL" and kind != "string":
        return text
    if kind == "boolean":
        return text.lower()
    quoted = "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'"))
    return {"string": quoted, "date": f"DATE {quoted}", "timestamp": f"TIMESTAMP {quoted}"}.get(kind, text)
