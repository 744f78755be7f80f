import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thalweg.tables.sorted_words import SortedWords


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)), st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)))
def test_rank_is_searchsorted(values: list[int], words: list[int]) -> None:
    table, probes = np.sort(np.array(values, np.uint64)), np.array([*words, *values], np.uint64)
    assert SortedWords(table).rank(probes).tolist() == np.searchsorted(table, probes, "right").tolist()
