"""Hostile inputs: good texts, values and bytes in which something was changed, and things that were never good.

A test tries as many inputs as `THALWEG_FUZZ_INPUTS` says in the environment: few in `make test`, many in `make fuzz`.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

INPUTS = int(os.environ.get("THALWEG_FUZZ_INPUTS", "15"))
MOST_CHANGES = 6

fuzzed = settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck))

ODD_WORDS = (
    *("", " ", "\0", "\n", "'", '"', "`", "\\", "--", "/*", ";", "(", ")", "[", "]", "{", "}", ",", ".", "*", "$", ":"),
    *("NULL", "NaN", "-1", "0", "1e999", "9" * 400, "9" * 5000, "²", "٣", "é", "🌊", "\ud7ff", "\u202e", "a" * 3000),
    *("(" * 500, "[" * 500, "{a:" * 300, "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "CASE", "WINDOW", "__import__"),
)
PIECES = re.compile(r"\w+|\s+|[^\w\s]")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-3, 70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def changed_texts(draw: st.DrawFn, good: Sequence[str]) -> str:
    """A good text in which words were removed, repeated, moved or replaced; sometimes any text at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.text(max_size=80))
    pieces = PIECES.findall(draw(st.sampled_from(good)))
    others = [piece for text in good for piece in PIECES.findall(text)]
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        place = draw(st.integers(0, len(pieces)))
        change = draw(st.sampled_from(("remove", "repeat", "insert", "odd", "swap")))
        if change == "remove":
            del pieces[place : place + draw(st.integers(1, 5))]
        elif change == "repeat":
            pieces[place:place] = pieces[place : place + 8] * draw(st.integers(1, 4))
        elif change == "insert":
            pieces.insert(place, draw(st.sampled_from(others)))
        elif change == "odd":
            pieces.insert(place, draw(st.sampled_from(ODD_WORDS) | st.text(max_size=5)))
        elif pieces:
            other = draw(st.integers(0, len(pieces) - 1))
            pieces[other], pieces[place - 1] = pieces[place - 1], pieces[other]
    return "".join(pieces)


@st.composite
def changed_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """Good bytes that were cut, or in which some were changed."""
    data = bytearray(good[: draw(st.integers(0, len(good)))] if draw(st.booleans()) else good)
    for _ in range(draw(st.integers(0, MOST_CHANGES))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


@st.composite
def changed_values(draw: st.DrawFn, good: Any) -> Any:  # noqa: ANN401 - any value that JSON has
    """A good value of JSON in which some values, at any depth, were replaced, removed or added."""
    value = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        holder: Any = {"value": value}
        key: Any = "value"
        while isinstance(holder[key], dict | list) and holder[key] and draw(st.integers(0, 3)):
            holder = holder[key]
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        change = draw(st.sampled_from(("replace", "replace", "remove", "add")))
        if change == "replace":
            holder[key] = draw(json_values)
        elif change == "remove" and holder is not value and len(holder) > 1:
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=4))] = draw(json_values)
        if "value" in holder and key == "value":
            value = holder["value"]
    return value


def refuses_clearly(call: Callable[[], object], *errors: type[Exception]) -> None:
    """Call with a hostile input: it works, or one of the documented errors says why not.

    An error is documented if Thalweg itself raises it: a `raise` statement in its source, not an operation that failed.
    """
    try:
        call()
    except errors as error:
        refused = error
    else:
        return
    *_, (frame, line) = traceback.walk_tb(refused.__traceback__)
    path = frame.f_code.co_filename
    statement = linecache.getline(path, line).strip()
    is_documented = f"{os.sep}thalweg{os.sep}" in path and statement.startswith("raise") and str(refused).strip()
    assert is_documented, f"{path}:{line}: {statement}: {refused!r}"
