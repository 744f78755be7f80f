"""Outcomes that depend on the row alone, so that every contender and every run keeps the same rows."""

from __future__ import annotations

from hashlib import blake2b


def share_of(salt: str, row: int) -> float:
    """A number from 0 to 1, by chance but always the same.

    >>> share_of("a", 1) == share_of("a", 1) != share_of("b", 1)
    True
    """
    return int.from_bytes(blake2b(f"{salt} {row}".encode(), digest_size=6).digest()) / (1 << 48)
