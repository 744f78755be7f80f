"""Which filters must run before which.

Two wishes reduce to one relation. A filter *after* others waits until they have run. A *pinned* filter holds its
place: filters that are written before it stay before it, and filters that are written after it stay after it, so that
exactly the same tuples reach it in every order of the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import integers_of, masks_of
from thalweg.ordering.types import Integers

MAX_FILTERS = 63  # one drop bit each in a signed 64-bit mask


def required_before(
    filters: int, after: Mapping[int, Collection[int]] | None = None, pinned: Collection[int] = ()
) -> Integers:
    """For each filter, the bit mask of all filters that must run before it (closed transitively).

    >>> required_before(4, after={0: [2]}).tolist()
    [4, 0, 0, 0]
    >>> required_before(3, pinned=[1]).tolist()
    [0, 1, 3]
    """
    check_filters(filters)
    direct: list[set[int]] = [set() for _ in range(filters)]
    is_mapping = isinstance(after, Mapping) and all(isinstance(earlier, Iterable) for earlier in after.values())
    if after is not None and not is_mapping:
        raise TypeError(f"'after' is a mapping like {{2: [0]}}, filter 2 after filter 0, not {after!r}")
    for later, earlier in (after or {}).items():
        for number in (later, *earlier):
            _check_index(filters, number)
        direct[later].update(earlier)
    for place in pinned:
        _check_index(filters, place)
        direct[place].update(range(place))
        for later in range(place + 1, filters):
            direct[later].add(place)

    required = np.zeros(filters, np.int64)
    waiting = set(range(filters))
    while waiting:
        ready = [number for number in sorted(waiting) if direct[number].isdisjoint(waiting)]
        if not ready:
            raise ValueError(
                f"filters {sorted(waiting)} wait for one another in a cycle; remove one of their "
                f"'after' or 'pinned' requirements"
            )
        for number in ready:
            required[number] = _union(1 << earlier | int(required[earlier]) for earlier in direct[number])
        waiting.difference_update(ready)
    return required


def required_of(required: ArrayLike | None, filters: int) -> Integers:
    """For each filter, the mask of filters that must run before it; an error if no order can keep to that.

    >>> required_of(None, 2).tolist(), required_of([0, 1], 2).tolist()
    ([0, 0], [0, 1])
    """
    checked = np.zeros(filters, np.int64) if required is None else masks_of(required, filters)
    if checked.size != filters:
        raise ValueError(f"required holds a mask for each of the {filters} filters, not {checked.size} masks")
    legal_order(checked)
    return checked


def legal_order(required: Integers, order: Iterable[int] | None = None) -> tuple[int, ...]:
    """The order nearest to the wanted order (as written by default) in which no filter runs too early.

    >>> legal_order(required_before(4, after={0: [2]}))
    (1, 2, 0, 3)
    """
    numbers = range(len(required))
    expected = f"an order names each of the filters 0..{len(required) - 1} once"
    wanted = list(numbers) if order is None else integers_of(list(order), expected).tolist()
    if sorted(wanted) != list(numbers):
        raise ValueError(f"{expected}, not {wanted!r:.80}")
    placed, legal = 0, []
    while wanted:
        following = next((number for number in wanted if not int(required[number]) & ~placed), None)
        if following is None:
            raise ValueError(f"filters {sorted(wanted)} require one another in a cycle, so that none can run first")
        wanted.remove(following)
        legal.append(following)
        placed |= 1 << following
    return tuple(legal)


def is_legal(required: Integers, order: Iterable[int]) -> bool:
    """Whether every filter comes after all that it requires."""
    return legal_order(required, order) == tuple(order)


def check_filters(filters: int) -> None:
    """Refuse a number of filters that a drop mask cannot hold."""
    if not 1 <= filters <= MAX_FILTERS:
        raise ValueError(f"between 1 and {MAX_FILTERS} filters are allowed, not {filters}")


def _check_index(filters: int, number: object) -> None:
    if not isinstance(number, int | np.integer) or not 0 <= number < filters:
        raise ValueError(f"there is no filter {number!r:.80}: filters are numbered 0..{filters - 1}")


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
