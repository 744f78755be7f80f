"""Bytes that are saved or sent, behind a line that says what they are and a digest that says whether they are whole.

One framing for all that Thalweg stores: a reader learns that a file is of another kind, of another version, or damaged,
before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"thalweg "
DIGEST_BYTES = 32
LONGEST_HEADER = 80  # characters of a kind and a version
LENGTH = struct.Struct("<Q")
REMEDY = "delete it to start afresh"  # what a user does about saved state that cannot be used


class SavedStateError(ValueError):
    """Saved state that cannot be used: damaged, of another kind, or of another version."""


def seal(kind: str, version: int, *parts: bytes) -> bytes:
    """Parts of a saved value, of a kind and a version, as one piece of bytes, which `unseal` takes apart again.

    >>> unseal("greeting", 1, seal("greeting", 1, b"good", b"morning"))
    [b'good', b'morning']
    """
    body = b"".join(LENGTH.pack(len(part)) + part for part in parts)
    return MAGIC + f"{kind} {version}\n".encode() + hashlib.sha256(body).digest() + body


def unseal(kind: str, version: int, data: bytes, remedy: str = REMEDY) -> list[bytes]:
    """The parts that `seal` was given, or a `SavedStateError` that says why not, and what to do about it.

    >>> unseal("greeting", 2, seal("greeting", 1, b"good morning"))
    Traceback (most recent call last):
    thalweg.sealed.SavedStateError: the saved greeting has version 1, and this Thalweg reads version 2: upgrade Thalweg,
    or delete it to start afresh
    """
    header, newline, _ = data[: LONGEST_HEADER + len(MAGIC)].partition(b"\n")
    found_kind, _, found_version = header.removeprefix(MAGIC).decode("utf-8", "replace").rpartition(" ")
    if not header.startswith(MAGIC) or not newline or not found_version.isdecimal() or not found_version.isascii():
        raise SavedStateError(f"this is no saved {kind}, or one of an early version; {remedy}")
    if found_kind != kind:
        raise SavedStateError(f"this is a saved {found_kind}, not a saved {kind}; {remedy}")
    if int(found_version) != version:
        raise SavedStateError(
            f"the saved {kind} has version {found_version}, and this Thalweg reads version {version}: upgrade Thalweg, "
            f"or {remedy}"
        )
    start = len(data) - len(data.removeprefix(header + newline))
    digest, body = data[start : start + DIGEST_BYTES], data[start + DIGEST_BYTES :]
    if hashlib.sha256(body).digest() != digest:
        raise SavedStateError(f"the saved {kind} is damaged or cut short; {remedy}")
    return _parts(kind, body, remedy)


def unseal_json(kind: str, version: int, data: bytes, remedy: str = REMEDY) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value that is the only part of a saved value, or a `SavedStateError`.

    >>> unseal_json("greeting", 1, seal("greeting", 1, b'{"words": 2}'))
    {'words': 2}
    """
    parts = unseal(kind, version, data, remedy)
    if len(parts) != 1:
        raise odd(kind, f"{len(parts)} parts", remedy)
    return load_json(kind, parts[0])


def load_json(kind: str, text: bytes | str) -> Any:  # noqa: ANN401 - any value that JSON has
    """The value of a JSON text, or a `SavedStateError`; text that nests too deep is refused, too.

    >>> load_json("greeting", "{")
    Traceback (most recent call last):
    thalweg.sealed.SavedStateError: the saved greeting cannot be read: Expecting property name enclosed in double
    quotes: line 1 column 2 (char 1)
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SavedStateError(f"the saved {kind} cannot be read: {error}") from None


def load_fields(kind: str, text: bytes | str, types: Mapping[str, type]) -> dict[str, Any]:
    """The fields of a JSON object that has exactly these names and types, or a `SavedStateError`.

    A whole number is accepted as a `float`, but neither as a `bool` nor the other way round.

    >>> load_fields("greeting", '{"words": 2, "volume": 1}', {"words": int, "volume": float})
    {'words': 2, 'volume': 1}
    >>> load_fields("greeting", '{"words": "two"}', {"words": int})
    Traceback (most recent call last):
    thalweg.sealed.SavedStateError: the saved greeting is not what Thalweg writes ('words' is 'two'); delete it to start
    afresh
    """
    fields = load_json(kind, text)
    if not isinstance(fields, dict):
        raise odd(kind, f"no fields, but {type(fields).__name__}")
    if fields.keys() != types.keys():
        raise odd(kind, f"fields {', '.join(map(str, fields))}")
    for name, expected in types.items():
        value = fields[name]
        fits = isinstance(value, int | float) if expected is float else isinstance(value, expected)
        if not fits or (isinstance(value, bool) and expected is not bool):
            raise odd(kind, f"{name!r} is {value!r:.40}")
    return fields


def dump_table(table: pa.Table) -> bytes:
    """An Arrow table as an IPC stream, for `seal`."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def load_table(kind: str, data: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """The table that `dump_table` wrote, of this schema if a schema is given, without NULL; or a `SavedStateError`."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise odd(kind, f"{type(error).__name__} from Arrow") from None
    if schema is not None and not table.schema.equals(schema):
        raise odd(kind, f"columns {', '.join(table.column_names)}")
    if any(column.null_count for column in table.columns):
        raise odd(kind, "NULL")
    return table


@contextmanager
def refusing_odd_values(kind: str, remedy: str = REMEDY) -> Iterator[None]:
    """While a value is made of saved content: content that does not fit gives a `SavedStateError`.

    >>> with refusing_odd_values("greeting"):
    ...     {"words": 2}["volume"]
    Traceback (most recent call last):
    thalweg.sealed.SavedStateError: the saved greeting is not what Thalweg writes (KeyError: 'volume'); delete it to
    start afresh
    """
    try:
        yield
    except SavedStateError:
        raise
    except Exception as error:  # noqa: BLE001 - Arrow's errors are of many classes
        raise odd(kind, f"{type(error).__name__}: {error}", remedy) from None


def odd(kind: str, found: str, remedy: str = REMEDY) -> SavedStateError:
    """The error for content whose digest is right, but which Thalweg does not write."""
    return SavedStateError(f"the saved {kind} is not what Thalweg writes ({found}); {remedy}")


def _parts(kind: str, body: bytes, remedy: str) -> list[bytes]:
    parts, start = list[bytes](), 0
    while start < len(body):
        first = start + LENGTH.size
        size = LENGTH.unpack_from(body, start)[0] if first <= len(body) else len(body)
        if first + size > len(body):
            raise odd(kind, "a part is cut short", remedy)
        parts.append(body[first : first + size])
        start = first + size
    return parts


def short_digest(texts: Sequence[str]) -> str:
    r"""A short name for a list of texts, by their content.

    >>> short_digest(["a", "b"]) == short_digest(["a\nb"])
    False
    """
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:12]
