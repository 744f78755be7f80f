"""IP addresses of both families as numbers: from text, bytes or integers, whole columns at a time.

IPv4 text is parsed with whole-array operations; IPv6 text a value at a time, each distinct value once.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers
from thalweg.tables.codes import WORD_BYTES, Words, bytes_and_offsets, words_at

IPV4_BITS = 32
IPV4_BYTES, IPV6_BYTES = 4, 16
IPV4_LIMIT = 1 << IPV4_BITS
IPV4_SHIFT = np.uint64(IPV4_BITS)
ZERO, NINE, DOT = np.uint8(ord("0")), np.uint8(9), np.uint8(ord("."))
DOTS, MOST_IN_OCTET = 3, 255
NOT_IPV4 = "not all are IPv4 addresses"
# So many texts are parsed at a time: all that is needed meanwhile stays in the processor's cache, and is too small for
# the C library to return it to the system and ask for it again, which takes longer than the parsing.
PIECE = 3000


class Addresses(NamedTuple):
    """IP addresses of both families as 128-bit numbers, IPv4 in the leading 32 bits so that prefixes mean the same."""

    is_ipv6: Booleans
    high: Words
    low: Words


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
        raise ValueError(f"{numbers[wrong][0]} is no IPv4 number: such numbers are 0 to {IPV4_LIMIT - 1}")
    return _ipv4(numbers)


def _from_bytes(column: pa.LargeBinaryArray) -> Addresses:
    data, offsets = bytes_and_offsets(column)
    starts, sizes = offsets[:-1], np.diff(offsets)
    is_ipv6 = sizes == IPV6_BYTES
    wrong = ~(is_ipv6 | (sizes == IPV4_BYTES))
    if wrong.any():
        value = column[int(np.flatnonzero(wrong)[0])].as_py()
        raise ValueError(f"{value!r} is no IP address: an address has {IPV4_BYTES} or {IPV6_BYTES} bytes")
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
    # Whether a byte is a further digit of the number that the byte before it belongs to.
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
        raise ValueError(f"{text!r} is no IP address: write an address such as '192.0.2.1' or '2001:db8::1'") from None
