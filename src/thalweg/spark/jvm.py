"""Classes of the JVM by their full name: each in one call, where py4j's dotted names take a call for every dot."""

from __future__ import annotations

from typing import Any


def java_class(jvm: Any, name: str) -> Any:  # noqa: ANN401 - py4j's view of the JVM, and a class of it
    """A class, or an object of py4j that cannot be called if there is no such class."""
    return getattr(jvm, name)
