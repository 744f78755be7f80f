"""The prefixes of a stored table, ready for longest-prefix match: what `tw.prefix_match` probes.

IP prefixes cut the line of all addresses into ranges, each with the longest prefix that covers it: one search in the
sorted ranges answers for a whole batch. String prefixes are looked up as keys, from the longest length to the shortest.
IPv4 text is parsed with whole-array operations; IPv6 text a value at a time, each distinct value once. Knows Arrow and
NumPy, not Spark.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers
from thalweg.tables.keys import (
    WORD_BYTES,
    KeySet,
    KeyTableError,
    SortedWords,
    Words,
    bytes_and_offsets,
    common_type,
    flat,
    pack,
    unpack,
    words_at,
)

IPV4_BITS, IPV6_BITS = 32, 128
IPV4_BYTES, IPV6_BYTES = 4, 16
IPV4_LIMIT = 1 << IPV4_BITS
IPV4_SHIFT = np.uint64(IPV4_BITS)
ZERO, NINE, DOT = np.uint8(ord("0")), np.uint8(9), np.uint8(ord("."))
DOTS, MOST_IN_OCTET = 3, 255
NOT_IPV4 = "not all are IPv4 addresses"
# So many texts are parsed at a time: all that is needed meanwhile stays in the processor's cache, and is too small for
# the C library to return it to the system and ask for it again, which takes longer than the parsing.
PIECE = 3000
NETWORK = r"^(?P<address>[^/]*)(?:/(?P<length>[0-9]+))?$"
# The bits of a 128-bit address that a prefix of each length leaves open: its high and its low word.
HOST_HIGH, HOST_LOW = np.array(
    [divmod((1 << IPV6_BITS - length) - 1, 1 << 64) for length in range(IPV6_BITS + 1)], np.uint64
).T


class Addresses(NamedTuple):
    """IP addresses of both families as 128-bit numbers, IPv4 in the leading 32 bits so that prefixes mean the same."""

    is_ipv6: Booleans
    high: Words
    low: Words


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
    >>> routes.longest(pa.array(["10.1.2.3", "10.2.0.0", "192.0.2.1", "2001:db8::1", None])).to_pylist()
    ['10.1.0.0/16', '10.0.0.0/8', None, '2001:db8::/32', None]
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
        self._texts = flat(prefixes.column(0)).cast(pa.string())
        self._index = _Networks(self._texts) if kind == "ip" else _Strings(self._texts, keys)

    def __len__(self) -> int:
        return len(self._texts)

    def matches(self, column: pa.Array) -> pa.BooleanArray:
        """Whether a prefix matches; NULL for NULL. A ValueError names the first value that is no IP address.

        IP addresses may be text, binary (4 or 16 bytes) or integers (IPv4). An IPv4 address that is written as an
        IPv6 one (``::ffff:10.0.0.1``) is an IPv6 address, as in the standard library's `ipaddress`.
        """
        column, places = self._locate(column)
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(places >= 0, mask=nulls)

    def longest(self, column: pa.Array) -> pa.StringArray:
        """The longest prefix that matches, as the table writes it; NULL where none does."""
        _, places = self._locate(column)
        return self._texts.take(pa.array(places, mask=places < 0))

    def check(self, kind: pa.DataType) -> None:
        """Raise a TypeError unless a column of this type can be matched; needs no data.

        >>> Prefixes(pa.array(["a"]), kind="string").check(pa.int64())
        Traceback (most recent call last):
        TypeError: a column of type int64 has no string prefixes: write col(...).cast('string')
        """
        accepted = [pa.large_string(), *([pa.int64(), pa.large_binary()] if self.kind == "ip" else [])]
        if common_type(kind) not in accepted and not pa.types.is_null(kind):
            raise TypeError(f"a column of type {kind} has no {self.kind} prefixes: write col(...).cast('string')")

    def to_bytes(self) -> bytes:
        """The prefixes as an Arrow IPC stream, followed by its SHA-256 digest (which Arrow readers ignore)."""
        return pack(pa.table({"prefix": self._texts}), "prefixes", kind=self.kind)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The prefixes that `to_bytes` wrote, checked before anything is built."""
        table, about = unpack(data, "prefixes")
        return cls(table, about["kind"])

    def _locate(self, column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, Integers]:
        """The column in the form it is compared in, and for each row the longest prefix that matches, -1 for none."""
        self.check(column.type)
        column = flat(column)
        if not pa.types.is_null(column.type):
            column = column.cast(common_type(column.type))
        rows = np.flatnonzero(column.is_valid())
        places = np.full(len(column), -1)
        if rows.size:
            places[rows] = self._index.locate(column.drop_null() if column.null_count else column)
        return column, places


class _Strings:
    """String prefixes: keys, tried from the longest length to the shortest."""

    def __init__(self, texts: pa.StringArray, keys: KeySet) -> None:
        self._keys = keys
        self._lengths = sorted(pc.binary_length(texts).unique().to_pylist(), reverse=True)

    def locate(self, column: pa.Array) -> Integers:
        column = column.cast(pa.large_binary())
        sizes = pc.binary_length(column).to_numpy()
        places = np.full(len(column), -1)
        for length in self._lengths:
            rows = np.flatnonzero((places < 0) & (sizes >= length))
            if rows.size:
                places[rows] = self._keys.search([pc.binary_slice(column.take(pa.array(rows)), 0, length)])
        return places


class _Networks:
    """IP prefixes: for each family the ranges that they cut, and the longest prefix in each."""

    def __init__(self, texts: pa.StringArray) -> None:
        addresses, lengths = _parse_networks(texts)
        self._ipv4, self._ipv6 = (_Ranges(addresses, lengths, is_ipv6=is_ipv6) for is_ipv6 in (False, True))

    def locate(self, column: pa.Array) -> Integers:
        addresses = parse_addresses(column)
        places = self._ipv4.locate(addresses.high)
        if addresses.is_ipv6.any():
            wide = addresses.is_ipv6
            places[wide] = self._ipv6.locate(_points(addresses.high[wide], addresses.low[wide]))
        return places


class _Ranges:
    """The disjoint ranges of addresses that the prefixes of one family cut, and the longest prefix of each, or -1."""

    def __init__(self, addresses: Addresses, lengths: Integers, *, is_ipv6: bool) -> None:
        rows = np.flatnonzero(addresses.is_ipv6 == is_ipv6)
        high, low, lengths = addresses.high[rows], addresses.low[rows], lengths[rows]
        next_low = (low | HOST_LOW[lengths]) + np.uint64(1)
        next_high = (high | HOST_HIGH[lengths]) + (next_low == 0)
        starts, nexts = (_points(high, low), _points(next_high, next_low)) if is_ipv6 else (high, next_high)
        bounds = np.unique(np.concatenate([starts, nexts]))
        first, end = np.searchsorted(bounds, starts), np.searchsorted(bounds, nexts)
        end[(next_high == 0) & (next_low == 0)] = bounds.size  # past the last address it starts from 0 again
        self._longest = np.full(bounds.size + 1, -1)
        for length in np.unique(lengths):  # longer prefixes over shorter ones; those of one length are apart
            chosen = np.flatnonzero(lengths == length)
            counts = end[chosen] - first[chosen]
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            self._longest[np.repeat(first[chosen], counts) + steps + 1] = np.repeat(rows[chosen], counts)
        self._rank: Callable[[NDArray[Any]], Integers] = (
            (lambda points: np.searchsorted(bounds, points, "right")) if is_ipv6 else SortedWords(bounds).rank
        )

    def locate(self, points: NDArray[Any]) -> Integers:
        places: Integers = self._longest.take(self._rank(points))
        return places


def parse_addresses(column: pa.Array) -> Addresses:
    """The IP addresses in a column without NULL: int64 for IPv4 numbers, large_binary for bytes, or text.

    >>> parse_addresses(pa.array(["0.0.1.2", "::3"]))
    Addresses(is_ipv6=array([False,  True]), high=array([1108101562368, 0], dtype=uint64),
              low=array([0, 3], dtype=uint64))
    """
    if column.type == pa.int64():
        return _from_numbers(column.to_numpy())
    if column.type == pa.large_binary():
        return _from_bytes(column)
    try:
        return _from_text(column.cast(pa.large_binary()))
    except ValueError:
        for text in column.to_pylist():
            _parse_address(text)
        raise


def _from_numbers(numbers: Integers) -> Addresses:
    wrong = (numbers < 0) | (numbers >= IPV4_LIMIT)
    if wrong.any():
        raise ValueError(f"{numbers[wrong][0]} is no IPv4 number: those are 0 to {IPV4_LIMIT - 1}")
    return _ipv4(numbers)


def _from_bytes(column: pa.LargeBinaryArray) -> Addresses:
    data, offsets = bytes_and_offsets(column)
    starts, sizes = offsets[:-1], np.diff(offsets)
    is_ipv6 = sizes == IPV6_BYTES
    wrong = ~(is_ipv6 | (sizes == IPV4_BYTES))
    if wrong.any():
        value = column[int(np.flatnonzero(wrong)[0])].as_py()
        raise ValueError(f"{value!r} is no IP address: those are {IPV4_BYTES} or {IPV6_BYTES} bytes")
    high, low = words_at(data, starts).byteswap(), np.zeros(starts.size, np.uint64)
    low[is_ipv6] = words_at(data, starts[is_ipv6] + WORD_BYTES).byteswap()
    return Addresses(is_ipv6, np.where(is_ipv6, high, high >> IPV4_SHIFT << IPV4_SHIFT), low)


def _from_text(column: pa.LargeBinaryArray) -> Addresses:
    data, offsets = bytes_and_offsets(column)
    if not (data == ord(":")).any():
        return _ipv4(_parse_ipv4(data, offsets))
    is_ipv6 = pc.match_substring(column, ":").to_numpy(zero_copy_only=False)
    narrow = _ipv4(_parse_ipv4(*bytes_and_offsets(column.filter(pa.array(~is_ipv6)))))
    distinct = column.filter(pa.array(is_ipv6)).dictionary_encode()
    packed = b"".join(_parse_ipv6(text.decode()) for text in distinct.dictionary.to_pylist())
    wide = np.frombuffer(packed, ">u8").reshape(-1, 2).astype(np.uint64)[distinct.indices.to_numpy()]
    addresses = Addresses(is_ipv6, np.zeros(len(column), np.uint64), np.zeros(len(column), np.uint64))
    addresses.high[~is_ipv6] = narrow.high
    addresses.high[is_ipv6], addresses.low[is_ipv6] = wide.T
    return addresses


def _ipv4(numbers: Integers) -> Addresses:
    zeros = np.zeros(numbers.size, np.uint64)
    return Addresses(zeros.astype(np.bool_), numbers.view(np.uint64) << IPV4_SHIFT, zeros)


def _parse_ipv4(data: NDArray[np.uint8], offsets: Integers) -> Integers:
    """The numbers of IPv4 addresses, given as the bytes of all texts and where each starts and ends."""
    pieces = range(0, max(offsets.size - 1, 1), PIECE)
    return np.concatenate([_parse_piece(data, offsets[at : at + PIECE + 1]) for at in pieces])


def _parse_piece(data: NDArray[np.uint8], offsets: Integers) -> Integers:
    text, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    starts, ends = offsets[:-1], offsets[1:]
    digits = text - ZERO
    is_digit = digits <= NINE
    dots = np.flatnonzero(text == DOT)
    if dots.size != DOTS * starts.size or np.count_nonzero(is_digit) + dots.size != text.size:
        raise ValueError(NOT_IPV4)
    lasts = np.vstack([dots.reshape(starts.size, DOTS).T, ends]) - 1
    if (lasts[0] < starts).any() or (lasts[2] >= lasts[3]).any():  # a row has other than three dots
        raise ValueError(NOT_IPV4)
    # Whether a byte goes on with the number that the byte before it is in, and the one before that.
    goes_on = np.zeros(text.size + 2, np.bool_)
    goes_on[3:] = is_digit[1:] & is_digit[:-1]
    goes_on[starts + 2] = False
    second = goes_on[2:]
    third = second & goes_on[1:-1]
    numbers = digits.astype(np.uint16)
    numbers[1:] += second[1:] * (digits[:-1] * np.uint16(10))
    numbers[2:] += third[2:] * (digits[:-2] * np.uint16(100))
    octets = numbers.take(lasts).astype(np.int64)
    if (
        not is_digit.take(lasts).all()  # an octet without digits
        or (octets > MOST_IN_OCTET).any()
        or (third & goes_on[:-2]).any()  # four digits
        or (second[1:] & ~second[:-1] & (digits[:-1] == 0)).any()  # a leading zero, which some read as octal
    ):
        raise ValueError(NOT_IPV4)
    addresses: Integers = ((octets[0] << 8 | octets[1]) << 8 | octets[2]) << 8 | octets[3]
    return addresses


def _parse_ipv6(text: str) -> bytes:
    try:
        return socket.inet_pton(socket.AF_INET6, text)
    except OSError:  # the rarer forms, such as a scope
        return _parse_address(text).packed


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{text!r} is no IP address: write one such as '192.0.2.1' or '2001:db8::1'") from None


def _parse_networks(texts: pa.StringArray) -> tuple[Addresses, Integers]:
    """The first address and the length of each prefix; a `KeyTableError` if one is malformed or there twice."""
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
    """What to write instead of a prefix, None where it is right."""
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
