from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from thalweg.spark.filters.predicates.digests import answers_digest

MODEL = "small"


def length(text: str) -> int:
    return len(text)


def asking(model: Any) -> Callable[..., Any]:  # noqa: ANN401 - any value
    async def asks(text: str, *, least: int = 3) -> bool:
        return length(text) > least and model == MODEL

    return asks


def with_default(model: str) -> Callable[..., Any]:
    async def asks(text: str, model: str = model) -> bool:
        return model in text

    return asks


class Service:
    """A service as a program may hold it."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.itself = self

    async def __call__(self, text: str) -> bool:
        return self.model in text

    async def ask(self, text: str) -> bool:
        return self.model in text


@pytest.mark.parametrize(
    "make",
    [
        asking,
        with_default,
        Service,
        lambda model: Service(model).ask,
        lambda model: partial(asking("x"), least=model),
        lambda model: asking([{"model": (model,)}]),
        lambda model: asking(Service(model)),
        lambda model: asking({model, "other"}),
    ],
)
def test_functions_that_hold_other_values_are_told_apart(make: Callable[[str], Callable[..., Any]]) -> None:
    assert answers_digest(make("large")) == answers_digest(make("large"))
    assert answers_digest(make("large")) != answers_digest(make("small"))


def test_values_and_functions_of_the_module_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers_digest(asking("small"))
    monkeypatch.setitem(globals(), "MODEL", "large")
    with_another_model = answers_digest(asking("small"))
    monkeypatch.setitem(globals(), "length", lambda text: len(text) + 1)
    assert len({before, with_another_model, answers_digest(asking("small"))}) == 3


PROGRAM = """
from thalweg.spark.filters.predicates.digests import answers_digest, code_digest

def outer(words):
    async def is_known(word):
        return word in {"ja", "nein", "doch"} or word in words
    return is_known

found = outer({"un", "deux", "trois"})
print(answers_digest(found), code_digest(found))
"""


def test_a_later_process_finds_the_same() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1
