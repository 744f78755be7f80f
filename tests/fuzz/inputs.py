"""Hostile inputs: good texts, values and bytes in which something was changed, and things that were never good.

A maker of inputs is a function of random numbers. A test tries as many inputs as `THALWEG_FUZZ_INPUTS` says in the
environment: few in `make test`, where Hypothesis chooses the random numbers and makes an input that fails smaller, and
many in `make fuzz`, where they follow from the number of the input, which is faster. There an input that takes longer
than `LONGEST_SECONDS` fails: it hangs, or it grows faster than it may.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import signal
import traceback
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Input = TypeVar("Input")
Maker = Callable[[Random], Input]

INPUTS = int(os.environ.get("THALWEG_FUZZ_INPUTS", "15"))
FIRST = int(os.environ.get("THALWEG_FUZZ_FIRST", "0"))  # the number of the first input
MOST_FOR_HYPOTHESIS = 1000
MOST_CHANGES = 6
LONGEST_SHOWN = 3000  # letters of an input that fails
LONGEST_SECONDS = 30  # for an input, also on a busy machine; most take less than a hundredth of a second

ODD_WORDS = (
    *("", " ", "\0", "\n", "'", '"', "`", "\\", "--", "/*", ";", "(", ")", "[", "]", "{", "}", ",", ".", "*", "$", ":"),
    *("NULL", "NaN", "-1", "0", "1e999", "9" * 400, "9" * 5000, "²", "٣", "é", "🌊", "\ud7ff", "\u202e", "a" * 3000),
    *("(" * 500, "[" * 500, "{a:" * 300, "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "CASE", "WINDOW", "__import__"),
)
ODD_NUMBERS = (0, 1, -1, 2, 64, 2**31, -(2**63), 2**64, 10**400, 0.0, -0.5, 1e308, float("inf"), float("nan"))
PIECES = re.compile(r"\w+|\s+|[^\w\s]")


def try_inputs(make: Maker[Input], check: Callable[[Input], object]) -> None:
    """Check so many inputs; an input that fails is told with the error."""
    if INPUTS <= MOST_FOR_HYPOTHESIS:

        @settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.randoms(use_true_random=False))
        def check_sample(random: Random) -> None:
            _check(make(random), check)

        check_sample()
        return
    signal.signal(signal.SIGALRM, _tell_that_it_hangs)
    try:
        for number in range(FIRST, FIRST + INPUTS):
            made = make(Random(number))  # noqa: S311 - no secret
            signal.alarm(LONGEST_SECONDS)
            _check(made, check)
    finally:
        signal.alarm(0)


def _tell_that_it_hangs(*_: object) -> None:
    raise TimeoutError(f"an input took longer than {LONGEST_SECONDS} seconds")


def _check(made: Input, check: Callable[[Input], object]) -> None:
    try:
        check(made)
    except BaseException as error:
        error.add_note(f"The input was {made!r:.{LONGEST_SHOWN}}")
        raise


def any_text(random: Random, most: int) -> str:
    """Letters of all kinds, without halves of surrogate pairs."""
    kinds = ((32, 126), (0, 255), (0x370, 0xD7FF), (0xE000, 0x10FFFF))
    return "".join(chr(random.randint(*random.choice(kinds))) for _ in range(random.randint(0, most)))


def any_bytes(random: Random, most: int) -> bytes:
    """Some bytes."""
    return bytes(random.randint(0, 255) for _ in range(random.randint(0, most)))


def json_value(random: Random, depth: int = 3) -> Any:  # noqa: ANN401 - any value that JSON has
    """Any value that JSON has, and numbers that it does not have."""
    kind = random.randint(0, 7 if depth else 5)
    if kind <= 1:
        return random.choice((None, True, False))
    if kind == 2:
        return random.choice(ODD_NUMBERS)
    if kind == 3:
        return random.randint(-3, 70)
    if kind == 4:
        return random.randint(-(10**6), 10**6) / 1000
    if kind == 5:
        return any_text(random, 8)
    values = [json_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    return values if kind == 6 else {any_text(random, 6): value for value in values}


def changed_texts(good: Sequence[str]) -> Maker[str]:
    """A good text in which words were removed, repeated, moved or replaced; sometimes any text at all."""
    split = [PIECES.findall(text) for text in good]
    others = [piece for pieces in split for piece in pieces]

    def make(random: Random) -> str:
        if random.randint(0, 9) == 0:
            return any_text(random, 80)
        pieces = list(random.choice(split))
        for _ in range(random.randint(1, MOST_CHANGES)):
            place = random.randint(0, len(pieces))
            change = random.choice(("remove", "repeat", "insert", "odd", "swap"))
            if change == "remove":
                del pieces[place : place + random.randint(1, 5)]
            elif change == "repeat":
                pieces[place:place] = pieces[place : place + 8] * random.randint(1, 4)
            elif change == "insert":
                pieces.insert(place, random.choice(others))
            elif change == "odd":
                pieces.insert(place, random.choice(ODD_WORDS) if random.randint(0, 1) else any_text(random, 5))
            elif pieces:
                other = random.randint(0, len(pieces) - 1)
                pieces[other], pieces[place - 1] = pieces[place - 1], pieces[other]
        return "".join(pieces)

    return make


def changed_bytes(good: bytes) -> Maker[bytes]:
    """Good bytes that were cut, or in which some were changed."""

    def make(random: Random) -> bytes:
        data = bytearray(good[: random.randint(0, len(good))] if random.randint(0, 1) else good)
        for _ in range(random.randint(0, MOST_CHANGES)):
            place = random.randint(0, len(data))
            data[place : place + random.randint(0, 3)] = any_bytes(random, 3)
        return bytes(data)

    return make


def changed_values(good: Any) -> Maker[Any]:  # noqa: ANN401 - any value that JSON has
    """A good value of JSON in which some values, at any depth, were replaced, removed or added."""
    text = json.dumps(good)

    def make(random: Random) -> Any:  # noqa: ANN401 - as above
        root: Any = {"value": json.loads(text)}
        for _ in range(random.randint(1, MOST_CHANGES)):
            holder: Any = root
            key: Any = "value"
            while isinstance(holder[key], dict | list) and holder[key] and random.randint(0, 3):
                holder = holder[key]
                key = random.choice(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
            change = random.choice(("replace", "replace", "remove", "add"))
            if change == "replace":
                holder[key] = json_value(random)
            elif holder is not root and change == "remove":
                del holder[key]
            elif holder is not root and isinstance(holder, dict):
                holder[any_text(random, 4)] = json_value(random)
        return root["value"]

    return make


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
