"""The Python predicate of the example."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import compute

import thalweg as tw

SERVICES = pa.array([22, 25, 53, 80, 443])


@tw.predicate(on="dest_port")
def is_unusual(dest_port: pa.Array) -> pa.Array:
    """Whether no service of this network uses a port."""
    return compute.invert(compute.is_in(dest_port, SERVICES.cast(dest_port.type)))
