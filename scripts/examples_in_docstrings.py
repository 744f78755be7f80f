"""Lets the reference show the examples of all docstrings as code.

An extension of griffe, which reads docstrings for mkdocs. A docstring may end with examples without a heading; NumPy's
style wants a heading, and without it the examples would be read as text.
"""

import re
from typing import Any

import griffe

FIRST_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)
HEADING = "Examples\n--------\n"


class ExamplesInDocstrings(griffe.Extension):
    """Puts a heading before examples that have none."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Called for each object that was read."""
        if obj.docstring is not None and HEADING not in obj.docstring.value:
            obj.docstring.value = FIRST_EXAMPLE.sub(f"{HEADING}>>> ", obj.docstring.value, count=1)
