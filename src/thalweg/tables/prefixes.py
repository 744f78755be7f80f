"""The prefixes of a stored table, ready for `tw.prefix_match`: whether any of them matches.

IP prefixes cover ranges of the line of all addresses: one search among the sorted ends of these ranges answers for a
whole batch. String prefixes are looked up as keys, from the shortest length to the longest.
Knows Arrow and NumPy, not Spark.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers
from thalweg.tables.addresses import IPV4_BITS, Addresses, parse_addresses
from thalweg.tables.codes import Words
from thalweg.tables.comparable import common_type, flat
from thalweg.tables.keys import KeySet, KeyTableError
from thalweg.tables.sorted_words import SortedWords

IPV6_BITS = 128
NETWORK = r"^(?P<address>[^/]*)(?:/(?P<length>[0-9]+))?$"
# The bits of a 128-bit address that a prefix of each length leaves open: its high and its low word.
HOST_HIGH, HOST_LOW = np.array(
    [divmod((1 << IPV6_BITS - length) - 1, 1 << 64) for length in range(IPV6_BITS + 1)], np.uint64
).T


class Prefixes:
    """The prefixes of a stored table.

    Parameters
    ----------
    prefixes
        The prefixes as text, an array or a table of one column, without NULL and without duplicates.
    kind
        ``"ip"`` for networks ("10.0.0.0/8", "2001:db8::/32") and addresses of either family, ``"string"`` for text.

    Examples
    --------
    >>> routes = Prefixes(pa.array(["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]))
    >>> routes.matches(pa.array(["10.1.2.3", "10.2.0.0", "192.0.2.1", "2001:db8::1", None])).to_pylist()
    [True, True, False, True, None]
    >>> Prefixes(pa.array(["/img/", "/api/v1/"]), kind="string").matches(pa.array(["/img/a.png", "/api"])).to_pylist()
    [True, False]
    """

    def __init__(self, prefixes: pa.Table | pa.Array | pa.ChunkedArray, kind: Literal["ip", "string"] = "ip") -> None:
        if kind not in {"ip", "string"}:
            raise ValueError(f"kind is 'ip' or 'string', not {kind!r}")
        if not isinstance(prefixes, pa.Table):
            prefixes = pa.table({"prefix": prefixes})
        if prefixes.num_columns != 1:
            raise KeyTableError(f"prefixes are one column, not {prefixes.num_columns}: write table.select('prefix')")
        field = prefixes.schema[0]
        if common_type(field.type) != pa.large_string():
            raise KeyTableError(
                f"prefixes are text, but {field.name!r} is {field.type}: write col('{field.name}').cast('string')"
            )
        self.kind = kind
        keys = KeySet(prefixes)  # refuses NULL and, letter by letter, duplicates
        texts = flat(prefixes.column(0)).cast(pa.string())
        self._count = len(texts)
        self._index = _Networks(texts) if kind == "ip" else _Strings(texts, keys)

    def __len__(self) -> int:
        return self._count

    def matches(self, column: pa.Array) -> pa.BooleanArray:
        """Whether a prefix matches; NULL for NULL. A ValueError names the first value that is no IP address.

        IP addresses may be text, binary (4 or 16 bytes) or integers (IPv4). An IPv4 address that is written as an
        IPv6 address (``::ffff:10.0.0.1``) is an IPv6 address, as in the standard library's `ipaddress`.
        """
        self.check(column.type)
        column = flat(column)
        if not pa.types.is_null(column.type):
            column = column.cast(common_type(column.type))
        if column.null_count == 0:
            return pa.array(self._index.matches(column))
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        matches = np.zeros(len(column), np.bool_)
        if not nulls.all():
            matches[~nulls] = self._index.matches(column.drop_null())
        return pa.array(matches, mask=nulls)

    def check(self, kind: pa.DataType) -> None:
        """Raise a TypeError unless a column of this type can be matched; needs no data.

        >>> Prefixes(pa.array(["a"]), kind="string").check(pa.int64())
        Traceback (most recent call last):
        TypeError: a column of type int64 has no string prefixes: write col(...).cast('string')
        """
        accepted = [pa.large_string(), *([pa.int64(), pa.large_binary()] if self.kind == "ip" else [])]
        if common_type(kind) not in accepted and not pa.types.is_null(kind):
            raise TypeError(f"a column of type {kind} has no {self.kind} prefixes: write col(...).cast('string')")


class _Strings:
    """String prefixes: keys, tried from the shortest length to the longest."""

    def __init__(self, texts: pa.StringArray, keys: KeySet) -> None:
        self._keys = keys
        self._lengths = sorted(pc.binary_length(texts).unique().to_pylist())

    def matches(self, column: pa.Array) -> Booleans:
        column = column.cast(pa.large_binary())
        sizes = pc.binary_length(column).to_numpy()
        found = np.zeros(len(column), np.bool_)
        for length in self._lengths:
            rows = np.flatnonzero(~found & (sizes >= length))
            if rows.size:
                found[rows] = self._keys.holds([pc.binary_slice(column.take(pa.array(rows)), 0, length)])
        return found


class _Networks:
    """IP prefixes: for each family the ranges that they cover."""

    def __init__(self, texts: pa.StringArray) -> None:
        addresses, lengths = _parse_networks(texts)
        self._ipv4, self._ipv6 = (_Ranges(addresses, lengths, is_ipv6=is_ipv6) for is_ipv6 in (False, True))

    def matches(self, column: pa.Array) -> Booleans:
        addresses = parse_addresses(column)
        found = self._ipv4.contain(addresses.high)
        if addresses.is_ipv6.any():
            wide = addresses.is_ipv6
            found[wide] = self._ipv6.contain(_points(addresses.high[wide], addresses.low[wide]))
        return found


class _Ranges:
    """The ranges of addresses that the prefixes of one family cover, none of which touches another."""

    def __init__(self, addresses: Addresses, lengths: Integers, *, is_ipv6: bool) -> None:
        rows = np.flatnonzero(addresses.is_ipv6 == is_ipv6)
        high, low, lengths = addresses.high[rows], addresses.low[rows], lengths[rows]
        next_low = (low | HOST_LOW[lengths]) + np.uint64(1)
        next_high = (high | HOST_HIGH[lengths]) + (next_low == 0)
        starts, nexts = (_points(high, low), _points(next_high, next_low)) if is_ipv6 else (high, next_high)
        bounds = np.unique(np.concatenate([starts, nexts]))
        first, end = np.searchsorted(bounds, starts), np.searchsorted(bounds, nexts)
        end[(next_high == 0) & (next_low == 0)] = bounds.size  # past the last address it starts from 0 again
        changes = np.bincount(first, minlength=bounds.size + 1) - np.bincount(end, minlength=bounds.size + 1)
        is_covered = np.cumsum(changes[:-1]) > 0  # from each bound on
        was_covered = np.append(False, is_covered)[:-1]  # below each bound
        ends = bounds[is_covered != was_covered]
        self._rank: Callable[[NDArray[Any]], Integers] = (
            (lambda points: np.searchsorted(ends, points, "right")) if is_ipv6 else SortedWords(ends).rank
        )

    def contain(self, points: NDArray[Any]) -> Booleans:
        """Whether each point is in a range: behind an odd number of their ends."""
        inside: Booleans = self._rank(points) % 2 == 1
        return inside


def _parse_networks(texts: pa.StringArray) -> tuple[Addresses, Integers]:
    """The first address and the length of each prefix; a `KeyTableError` if a prefix is malformed or there twice."""
    parsed = pc.extract_regex(texts, NETWORK)
    if parsed.null_count:
        raise _malformed(texts)
    given = parsed.field("length")
    try:
        addresses = parse_addresses(parsed.field("address"))
        written = pc.if_else(pc.equal(given, ""), "-1", given).cast(pa.int64()).to_numpy()
    except ValueError:
        raise _malformed(texts) from None
    bits = np.where(addresses.is_ipv6, IPV6_BITS, IPV4_BITS)
    lengths: Integers = np.where(written < 0, bits, written)
    if (
        (lengths > bits).any()
        or (addresses.high & HOST_HIGH[lengths]).any()
        or (addresses.low & HOST_LOW[lengths]).any()
    ):
        raise _malformed(texts)
    order = np.lexsort((lengths, addresses.low, addresses.high, addresses.is_ipv6))
    same = np.ones(max(order.size - 1, 0), np.bool_)
    for part in (*addresses, lengths):
        same &= part[order[1:]] == part[order[:-1]]
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise KeyTableError(
            f"{same.sum()} of the {len(texts)} prefixes are there more than once, such as {texts[order[at]].as_py()!r} "
            f"and {texts[order[at + 1]].as_py()!r}: keep one of them"
        )
    return addresses, lengths


def _malformed(texts: pa.StringArray) -> KeyTableError:
    """The error that names a malformed prefix and what to write instead."""
    remedies = [(text, remedy) for text in texts.to_pylist() if (remedy := _remedy(text))]
    text, remedy = remedies[0]
    return KeyTableError(
        f"{len(remedies)} of the {len(texts)} prefixes are malformed, such as {text!r}: write {remedy}"
    )


def _remedy(text: str) -> str | None:
    """The text to write instead of a prefix, None where it is right."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return "a network such as '10.0.0.0/8' or '2001:db8::/32', or an address"
    right = re.fullmatch(NETWORK, text) and ipaddress.ip_address(text.partition("/")[0]) == network.network_address
    return None if right else repr(str(network))


def _points(high: Words, low: Words) -> NDArray[np.bytes_]:
    """128-bit numbers as bytes that sort as the numbers do."""
    points: NDArray[np.bytes_] = np.column_stack([high, low]).astype(">u8").view("S16")[:, 0]
    return points
