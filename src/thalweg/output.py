"""How commands write values and files: for people in four digits, for programs as JSON, and never half a file."""

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Any value that JSON has. Spelled out, the type is recursive, and every access would need a cast.
Json = Any
Value = float | int | str | None

FOUR_DIGITS = 1000


def format_value(value: Value) -> str:
    """A value as people read it: four significant digits, a dash where there is none.

    >>> [format_value(value) for value in (16, 1.49000001, 123456.7, "F3 F1", None)]
    ['16', '1.49', '123,457', 'F3 F1', '-']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == round(value) or abs(value) >= FOUR_DIGITS else f"{value:.4g}"


def finite(value: Json) -> Json:
    """The value with null for every number that JSON does not have, and lists for all sequences.

    >>> finite({"rate": float("nan"), "counts": (1, float("inf"))})
    {'rate': None, 'counts': [1, None]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(entry) for entry in value]
    return value


def write_json(path: Path, value: Json) -> None:
    """Write a value as JSON, the whole file or nothing."""
    write_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or the run after an interruption, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Each writer has a temporary file of its own: of two commands that write the same file, the last wins whole.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content.encode() if isinstance(content, str) else content)
            file.close()
            temporary.chmod(0o666 & ~_umask())  # temporary files are private; results are not
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise


def _umask() -> int:
    # It can be read only by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
