"""What every policy must do, run over all of `POLICIES`."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering import POLICIES, AdjacentSwap, AGreedy, AsWritten, Policy, policy
from thalweg.ordering.precedence import is_legal, required_before
from thalweg.ordering.types import Floats, Integers

every_policy = pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)


def show(one: Policy, masks: Integers, times: Floats, batch: int) -> None:
    """Let a policy see tuples as an executor shows them: profile tuples, then ordinary counts."""
    for start in range(0, len(masks), batch):
        part = masks[start : start + batch]
        one.update(part, times[start : start + batch])
        evaluated, dropped = np.zeros(one.filters, np.int64), np.zeros(one.filters, np.int64)
        alive = part
        for place in one.order:
            evaluated[place] = len(alive)
            alive = alive[(alive >> place) & 1 == 0]
            dropped[place] = evaluated[place] - len(alive)
        one.observe(evaluated, dropped, evaluated * times.mean(axis=0))


def stream(seed: int, filters: int, size: int = 400) -> tuple[Integers, Floats]:
    random = np.random.default_rng(seed)
    drops = random.random(filters)
    bits = random.random((size, filters)) < drops
    masks = (bits << np.arange(filters)).sum(axis=1)
    return masks[masks > 0], random.random((int((masks > 0).sum()), filters)) + 0.1


@every_policy
@settings(max_examples=30)
@given(data=st.data())
def test_order_is_always_a_legal_permutation(kind: type[Policy], data: st.DataObject) -> None:
    filters = data.draw(st.integers(1, 7))
    pinned = data.draw(st.sets(st.integers(0, filters - 1), max_size=2))
    after = {one: [one - 1] for one in data.draw(st.sets(st.integers(1, max(filters - 1, 1)))) if one < filters}
    required = required_before(filters, after, pinned)
    one = kind(filters, after=after, pinned=pinned, window=data.draw(st.sampled_from([1, 5, 50])))
    masks, times = stream(data.draw(st.integers(0, 99)), filters, size=60)
    for start in range(0, len(masks), 7):
        show(one, masks[start : start + 7], times[start : start + 7], batch=7)
        assert sorted(one.order) == list(range(filters))
        assert is_legal(required, one.order)
        assert all(one.order[place] == place for place in pinned)


@every_policy
@settings(max_examples=30)
@given(seed=st.integers(0, 999), filters=st.integers(1, 6), cuts=st.lists(st.integers(1, 40), max_size=8))
def test_a_batch_of_k_equals_k_batches_of_one(kind: type[Policy], seed: int, filters: int, cuts: list[int]) -> None:
    masks, times = stream(seed, filters, size=150)
    whole, single = kind(filters, window=40), kind(filters, window=40)
    edges = [0, *np.cumsum(cuts).tolist(), len(masks)]
    for start, stop in pairwise(edges):
        whole.update(masks[start:stop], times[start:stop])
    for k in range(len(masks)):
        single.update(masks[k : k + 1], times[k : k + 1])
    assert whole.order == single.order
    assert whole.last_change == single.last_change
    assert whole.profile.masks.tolist() == single.profile.masks.tolist()


@every_policy
def test_needs_only_later_filters(kind: type[Policy]) -> None:
    one = kind(5, window=20)
    show(one, *stream(3, 5), batch=10)
    for position in range(5):
        needed = one.needs(position)
        assert set(needed) <= set(one.order[position + 1 :])
        if one.name in {"sweep", "local-swaps"}:
            assert len(needed) <= 1  # what makes them cheap
        if not kind.default_p:  # it wants no profile tuples
            assert needed == ()


@every_policy
def test_one_filter_is_no_trouble(kind: type[Policy]) -> None:
    one = kind(1, window=3)
    show(one, np.ones(50, np.int64), np.ones((50, 1)), batch=5)
    assert one.order == (0,)
    assert one.last_change is None


@every_policy
def test_an_empty_batch_changes_nothing(kind: type[Policy]) -> None:
    one = kind(3)
    assert not one.update([])
    assert one.profile.seen == 0


@pytest.mark.parametrize(
    "kind", [kind for kind in POLICIES if kind not in {AsWritten, AdjacentSwap}], ids=lambda kind: kind.name
)
def test_the_filter_that_drops_everything_comes_first(kind: type[Policy]) -> None:
    random = np.random.default_rng(0)
    masks = 0b1000 | random.integers(0, 8, 3000)
    one = kind(4, window=100)
    for start in range(0, 3000, 10):
        part = masks[start : start + 10]
        one.update([known(one, int(mask)) for mask in part])
        evaluated = np.array([10, 8, 6, 5])
        one.observe(evaluated, [2, 2, 1, 5], evaluated * 1.0)
    assert one.order[0] == 3


def known(one: Policy, mask: int) -> int:
    """The bits that profiling this tuple reveals."""
    position = next(place for place, name in enumerate(one.order) if mask >> name & 1)
    return sum(mask & 1 << name for name in (one.order[position], *one.needs(position)))


@every_policy
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.5}, "between 0 and 1, not 1.5"),
        ({"p": -0.1}, "between 0 and 1, not -0.1"),
        ({"window": 0}, "at least 1 profile tuple, not 0"),
        ({"alpha": 0}, "above 0 and at most 1"),
        ({"after": {0: [1], 1: [0]}}, "cycle"),
        ({"order": [0, 1]}, "each of the filters 0..2 once"),
    ],
)
def test_bad_options_say_what_is_allowed(kind: type[Policy], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(3, **options)  # type: ignore[arg-type]


@every_policy
def test_too_many_filters_are_refused(kind: type[Policy]) -> None:
    with pytest.raises(ValueError, match=r"between 1 and 63|at most 20"):
        kind(64)


def test_policies_are_found_by_name() -> None:
    assert [type(policy(kind.name, 2)) for kind in POLICIES] == list(POLICIES)
    with pytest.raises(ValueError, match="no policy 'agreedy'; did you mean 'a-greedy'"):
        policy("agreedy", 2)


def test_sixty_three_filters_work() -> None:
    """The widest mask uses every bit but the sign."""
    random = np.random.default_rng(1)
    masks = random.integers(0, 2**62, 500) | random.integers(0, 2, 500) << 62
    one = AGreedy(63, window=200)
    one.update(masks)
    assert sorted(one.order) == list(range(63))
    assert np.array_equal(one.state.counts[0], [(masks[-200:] >> name & 1).sum() for name in one.order])
