"""What is sealed comes back as it was, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.sealed import SavedStateError, seal, unseal


@given(st.lists(st.binary(max_size=50), max_size=4))
def test_parts_come_back(parts: list[bytes]) -> None:
    assert unseal("state", 3, seal("state", 3, *parts)) == parts


@given(st.lists(st.binary(max_size=50), max_size=3), st.data())
def test_a_changed_byte_is_refused(parts: list[bytes], data: st.DataObject) -> None:
    sealed = bytearray(seal("state", 3, *parts))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SavedStateError):
        unseal("state", 3, bytes(sealed))


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(SavedStateError):
        unseal("state", 3, content)


def test_another_kind_or_version_is_named() -> None:
    sealed = seal("profile", 2, b"")
    with pytest.raises(SavedStateError, match="a saved profile, not a saved router"):
        unseal("router", 2, sealed)
    with pytest.raises(SavedStateError, match="version 2, and this Thalweg reads version 3"):
        unseal("profile", 3, sealed)
