"""Random structures of conditions: ANDs, ORs and NOTs of some parts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Tree = Any  # a text, or a connective with the list of its operands


def trees_of(parts: tuple[str, ...], most_parts: int) -> st.SearchStrategy[Tree]:
    """Trees of connectives over these parts."""
    return st.recursive(
        st.sampled_from(parts),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
            st.tuples(st.just("not"), st.lists(inner, min_size=1, max_size=1)),
        ),
        max_leaves=most_parts,
    )
