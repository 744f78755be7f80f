import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.tables.codes import codes, hash_bytes, is_exact, mixed


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 3), st.integers(0, 5))
def test_hashes_are_equal_exactly_for_equal_bytes(values: list[bytes], seed: int, skipped: int) -> None:
    column = pa.array(values, pa.large_binary())
    hashes = hash_bytes(column, seed)
    assert len(set(zip(values, hashes.tolist(), strict=True))) == len(set(values)) == len(set(hashes.tolist()))
    assert hash_bytes(column.slice(skipped), seed).tolist() == hashes[skipped:].tolist()


def test_another_seed_gives_other_hashes_and_bytes_beyond_the_longest_do_not_count() -> None:
    column = pa.array([b"a" * 20, b"a" * 16 + b"bbbb"], pa.large_binary())
    assert not set(hash_bytes(column, 0).tolist()) & set(hash_bytes(column, 1).tolist())
    first, second = hash_bytes(column, longest=16).tolist()
    assert first == second


@pytest.mark.parametrize("values", [["x" * 1_000_000, "y"], ["", "\0", "\0\0"], ["ab", "ba", "a", "b"]])
def test_long_and_empty_values_have_hashes_of_their_own(values: list[str]) -> None:
    assert np.unique(codes(pa.array(values))).size == len(values)


def test_whole_numbers_have_themselves_as_codes() -> None:
    assert codes(pa.array([-1, 2**62], pa.int64())).tolist() == [-1, 2**62]
    assert codes(pa.array([5], pa.int8())).tolist() == codes(pa.array([5], pa.uint64())).tolist() == [5]


def test_types_whose_codes_prove_equality() -> None:
    assert all(map(is_exact, [pa.int8(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.decimal128(18, 2)]))
    assert not any(map(is_exact, [pa.string(), pa.binary(4), pa.string_view(), pa.decimal128(19, 2)]))


def test_mixing_keeps_words_apart() -> None:
    assert np.unique(mixed(np.arange(100_000, dtype=np.uint64))).size == 100_000
