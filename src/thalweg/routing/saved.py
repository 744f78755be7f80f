"""Routing state as bytes: an Arrow IPC stream with a JSON text, followed by its SHA-256 digest. No code in it.

Knows the form, not what is in it: `thalweg.routing.class_router` does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.profile import DIGEST_BYTES, Profile
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.sample import Sample

FORMAT_VERSION = 3
ABOUT = b"thalweg.routing"


class RoutingError(ValueError):
    """A saved routing state that cannot be used: damaged, from a newer version, or of another query."""


class Saved(NamedTuple):
    """What was saved."""

    about: dict[str, Any]  # plain values
    masks: Integers  # of the sample
    codes: Integers
    numbers: Floats
    profiles: list[Profile]  # of the policies


def pack(about: Mapping[str, Any], sample: Sample, profiles: Iterable[Profile]) -> bytes:
    """Plain values, a sample and profiles as bytes.

    >>> data = pack({"seen": 5}, Sample(1, 10), [Profile(2, 10)])
    >>> unpack(data).about["seen"], len(unpack(data).profiles)
    (5, 1)
    """
    batch = pa.record_batch(
        {
            "masks": pa.array([sample.masks]),
            "codes": pa.array([sample.codes.ravel()]),
            "numbers": pa.array([sample.numbers.ravel()]),
            "profiles": pa.array([[one.to_bytes() for one in profiles]], pa.list_(pa.binary())),
        }
    )
    schema = batch.schema.with_metadata({ABOUT: json.dumps({"version": FORMAT_VERSION, **about})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> Saved:
    """What `pack` wrote, checked before anything is made of it."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise RoutingError("the saved routing state is damaged or cut short; delete it to start afresh")
    with pa.ipc.open_stream(body) as reader:
        about = json.loads((reader.schema.metadata or {}).get(ABOUT, b"{}"))
        if about.get("version") != FORMAT_VERSION:
            raise RoutingError(
                f"the saved routing state has format version {about.get('version')}, this Thalweg reads "
                f"{FORMAT_VERSION}; upgrade Thalweg, or delete the file to start afresh"
            )
        table = reader.read_all()
    masks, codes, numbers = (np.array(table[name][0].values) for name in ("masks", "codes", "numbers"))
    shape = masks.size, -1 if masks.size else 0
    profiles = [Profile.from_bytes(one) for one in table["profiles"][0].as_py()]
    return Saved(about, masks, codes.reshape(shape), numbers.reshape(shape), profiles)
