import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering import AGreedy
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.types import Integers
from thalweg.routing import ClassRouter, RoutedPipeline
from thalweg.routing.classifier import Cells, Chooser, Classifier
from thalweg.routing.partition import codes, numbers
from thalweg.routing.schedule import FIRST_LOOK
from thalweg_lab.experiments.cbr.stream import Stream, diagonal

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int32(), st.integers(-3, 3)),
    "floats": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -7.25])),
    "strings": (pa.string(), st.sampled_from(["", "a", "ä", "long " * 5])),
    "timestamps": (pa.timestamp("us", tz="UTC"), st.integers(-(10**6), 10**6)),
    "booleans": (pa.bool_(), st.booleans()),
    "dates": (pa.date32(), st.integers(-3, 3)),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\xff\x00"])),
    "nulls": (pa.null(), st.none()),
}


def bit(one: int) -> Filter:
    """A filter that drops the rows whose bit is set."""
    return lambda rows: rows >> one & 1 == 0


def no_clock() -> float:
    return 0.0


def _a_greedy(filters: int, order: Sequence[int] | None) -> AGreedy:
    return AGreedy(filters, order=order)


def pipelines(stream: Stream, p: float = 0.01, **options: Any) -> tuple[RoutedPipeline, Pipeline]:  # noqa: ANN401
    filters, costs = [bit(one) for one in range(stream.operators)], np.ones(stream.operators)

    def make(order: Sequence[int] | None) -> AGreedy:
        return AGreedy(stream.operators, order=order, p=p)

    router = ClassRouter(make, stream.attributes, **options)
    return (
        RoutedPipeline(router, filters, costs=costs, clock=no_clock),
        Pipeline(make(None), filters, costs=costs, clock=no_clock),
    )


def run(stream: Stream, routed: RoutedPipeline, plain: Pipeline, tuples: int, batch: int = 5000) -> float:
    """Run both on the same tuples; the share of evaluations that routing saves, profiling included."""
    before = [line.evaluations + line.extra_evaluations for line in (routed, plain)]
    for _ in range(tuples // batch):
        part = stream.next(batch)
        columns = {name: pa.array(values) for name, values in zip(stream.attributes, part.values.T, strict=True)}
        assert (routed.keep(part.masks, columns) == plain.keep(part.masks)).all()
    spent = [
        line.evaluations + line.extra_evaluations - start for line, start in zip((routed, plain), before, strict=True)
    ]
    return 1 - spent[0] / spent[1]


@given(data=st.data())
@settings(max_examples=60)
def test_what_is_kept_depends_neither_on_classes_nor_on_batches(data: st.DataObject) -> None:
    """Any classifier, of any type of column, over NULL, NaN, unseen values and slices."""
    kind, values = KINDS[data.draw(st.sampled_from(sorted(KINDS)))]
    masks = np.array(data.draw(st.lists(st.integers(0, 15), min_size=1, max_size=120)), np.int64)
    column = pa.array(data.draw(st.lists(st.none() | values, min_size=masks.size, max_size=masks.size)), kind)
    columns = {"a": column, "b": pa.array(masks % 3)}
    router = ClassRouter(lambda order: AGreedy(4, order=order, p=0.5, window=20), ["a", "b"])
    routed = RoutedPipeline(router, [bit(one) for one in range(4)], clock=no_clock)
    # A classifier is put in by hand, of values or of ranges, alone or with another; some values have no class.
    edges = data.draw(st.sampled_from([None, (0.0,), (-1.0, 1.0)]))
    cells = data.draw(st.sampled_from([Cells((0,), (edges,)), Cells((1, 0), (None, edges)), Cells((1,), (None,))]))
    used = [columns["ab"[one]] for one in cells.attributes]
    keys = np.unique(cells.of([codes(one) for one in used], [numbers(one) for one in used]))[::2]
    numbered = np.arange(keys.size) % 3 + 1
    orders = tuple(tuple(np.random.default_rng(seed).permutation(4).tolist()) for seed in range(4))
    router.policies += [router.learners.make(order) for order in orders[1:]]
    router.classifier = Classifier(cells, keys, numbered, orders)
    cuts = sorted(data.draw(st.lists(st.integers(0, masks.size), max_size=4)))
    kept = [
        routed.keep(masks[start:stop], {name: one[start:stop] for name, one in columns.items()})
        for start, stop in zip([0, *cuts], [*cuts, masks.size], strict=True)
    ]
    assert np.concatenate(kept).tolist() == (masks == 0).tolist()
    assert routed.tuples == masks.size


def test_strong_skew_saves_sixty_per_cent_of_the_evaluations() -> None:
    """Tables 5 and 6, eight operators, the greatest skew; learning included."""
    stream = Stream(diagonal(8, 0.05, 1.0))
    routed, plain = pipelines(stream)
    assert run(stream, routed, plain, 200_000) >= 0.6
    assert routed.router.explain()["classifier"]["attributes"] == ["attrC"]
    assert list(routed.rows_by) == [("attrC",)]
    assert routed.rows_by["attrC",] > 180_000
    benefit = routed.router.explain()["benefit"]
    assert benefit is not None
    assert benefit["saving"] == pytest.approx(1 - 1.35 / 4.7, abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_without_skew_it_costs_at_most_two_per_cent(seed: int) -> None:
    stream = Stream(np.full((8, 8), 0.688), seed)
    routed, plain = pipelines(stream)
    assert run(stream, routed, plain, 100_000) >= -0.02
    assert routed.router.classifier is None


def test_the_right_classifier_is_in_use_for_98_per_cent_of_the_tuples_after_learning() -> None:
    stream = Stream(diagonal(6, 0.25, 0.72), seed=1)
    routed, plain = pipelines(stream)
    run(stream, routed, plain, 100_000)
    right = 0
    for _ in range(40):
        run(stream, routed, plain, 5000)
        used = routed.router.explain()["classifier"]
        right += used is not None and used["attributes"] == ["attrC"]
    assert right / 40 >= 0.98


def _strings(_random: np.random.Generator, classes: Integers) -> pa.Array:
    return pa.array(np.array(["red", "green", "blue", None], object)[classes])


def _floats(random: np.random.Generator, classes: Integers) -> pa.Array:
    values = 25.0 * classes + random.random(classes.size) * 25
    return pa.array(np.where(random.random(classes.size) < 0.05, np.nan, values))


def _timestamps(random: np.random.Generator, classes: Integers) -> pa.Array:
    return pa.array(10**12 * classes + random.integers(0, 10**12, classes.size), pa.timestamp("us", tz="UTC"))


@pytest.mark.parametrize("column", [_strings, _floats, _timestamps])
def test_classifiers_of_every_kind_are_learnt(
    column: Callable[[np.random.Generator, Integers], pa.Array],
) -> None:
    """Strings with NULL, floats with NaN, by ranges, and times, by ranges; beside strings that are all different."""
    stream, random = Stream(diagonal(4, 0.05, 1.0)), np.random.default_rng(0)
    make = functools.partial(_a_greedy, 4)
    router, filters = ClassRouter(make, ["it", "unique"]), [bit(one) for one in range(4)]
    routed = RoutedPipeline(router, filters, costs=np.ones(4), clock=no_clock)
    for _ in range(20):
        part = stream.next(5000)
        unique = pa.array([str(number) for number in random.integers(0, 10**9, 5000)])
        kept = routed.keep(part.masks, {"it": column(random, part.values[:, 0]), "unique": unique})
        assert (kept == (part.masks == 0)).all()
    explained = router.explain()
    assert explained["classifier"]["attributes"] == ["it"]
    assert explained["benefit"]["saving"] > 0.35
    assert "high cardinality" in explained["pruned"]["unique"]


def test_rows_that_come_by_class_are_routed_too() -> None:
    """A class a batch: one order is always that of the batch before."""
    stream = Stream(diagonal(4, 0.05, 1.0))
    routed, plain = pipelines(stream)
    spent = 0
    for number in range(40):
        part = stream.next(20_000)
        own = part.values[:, 0] == number % 4
        columns = {name: pa.array(one[own]) for name, one in zip(stream.attributes, part.values.T, strict=True)}
        before = routed.evaluations
        assert (routed.keep(part.masks[own], columns) == plain.keep(part.masks[own])).all()
        if number >= 36:
            spent += (routed.evaluations - before) / own.sum()
    assert spent / 4 == pytest.approx(1.15, abs=0.05)
    assert routed.evaluations < 0.75 * plain.evaluations


def test_routing_stops_when_the_classes_do() -> None:
    # Classes that save nothing any more cost next to nothing, so they may stay in use for long: of the streams with the
    # seeds 0 to 4, one dropped them within 125,000 rows.
    stream = Stream(diagonal(4, 0.05, 1.0), seed=2)
    routed, plain = pipelines(stream)
    run(stream, routed, plain, 150_000)
    assert routed.router.classifier is not None
    stream.selectivities = np.full((4, 4), 0.47)
    run(stream, routed, plain, 75_000)
    assert routed.router.classifier is None
    assert run(stream, routed, plain, 100_000) >= -0.02


def test_classes_that_begin_later_are_found_though_the_sample_is_old() -> None:
    stream = Stream(np.full((4, 4), 0.47))
    routed, plain = pipelines(stream)
    run(stream, routed, plain, 400_000)
    assert routed.router.classifier is None
    stream.selectivities = diagonal(4, 0.05, 1.0)
    run(stream, routed, plain, 100_000)
    assert run(stream, routed, plain, 50_000) > 0.4


def test_classes_that_change_places_are_learnt_anew() -> None:
    stream = Stream(diagonal(8, 0.05, 1.0))
    routed, plain = pipelines(stream)
    for turn in range(3):
        stream.selectivities = np.roll(diagonal(8, 0.05, 1.0), turn, axis=1)
        assert run(stream, routed, plain, 200_000, 10_000) > 0.5


def test_a_batch_in_which_a_filter_fails_leaves_nothing_behind() -> None:
    stream, fails = Stream(diagonal(2, 0.05, 1.0)), False

    def second(rows: np.ndarray) -> np.ndarray:
        if fails:
            raise RuntimeError("no")
        return np.asarray(rows >> 1 & 1 == 0)

    router = ClassRouter(functools.partial(_a_greedy, 2), ["a"])
    routed = RoutedPipeline(router, [bit(0), second], costs=[1, 1], clock=no_clock)
    for number in range(60):
        part = stream.next(1000 if number % 3 else 50)
        fails = number % 5 == 4
        columns = {"a": pa.array(part.values[:, 0])}
        if fails:
            with pytest.raises(RuntimeError, match="no"):
                routed.keep(part.masks, columns)
        else:
            assert (routed.keep(part.masks, columns) == (part.masks == 0)).all()
    assert router.classifier is not None


def test_off_it_is_a_plain_pipeline() -> None:
    """Until classifiers are looked for, it evaluates what a pipeline with as many profile tuples evaluates."""
    stream = Stream(np.full((4, 4), 0.5))
    routed, plain = pipelines(stream, p=0.0)
    assert run(stream, routed, plain, 50_000) == 0
    assert routed.evaluated.tolist() == plain.evaluated.tolist()
    assert routed.split_seconds == 0


def test_expensive_calls_make_small_classes_run_together() -> None:
    """A call takes as long as a thousand rows: classes of a few rows do not get calls of their own."""
    now, sizes = 0.0, list[int]()

    def clock() -> float:
        return now

    def slow(one: int) -> Filter:
        def keep(rows: np.ndarray) -> np.ndarray:
            nonlocal now
            now += 1e-3 + 1e-6 * len(rows)
            sizes.append(len(rows))
            return np.asarray(rows >> one & 1 == 0)

        return keep

    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(lambda order: AGreedy(4, order=order, p=0.05), stream.attributes)
    routed = RoutedPipeline(router, [slow(one) for one in range(4)], clock=clock)
    for _ in range(100):
        part = stream.next(20_000)
        columns = {name: pa.array(values) for name, values in zip(stream.attributes, part.values.T, strict=True)}
        routed.keep(part.masks, columns)
    assert router.classifier is not None
    sizes.clear()
    part = stream.next(40)
    routed.keep(part.masks, {name: pa.array(one) for name, one in zip(stream.attributes, part.values.T, strict=True)})
    assert sizes[0] == 40


def test_columns_have_to_be_given() -> None:
    routed, _ = pipelines(Stream(diagonal(2, 0.05, 1.0)))
    with pytest.raises(TypeError, match=r"keep\(rows, columns\) with attrC, constant"):
        routed.keep(np.zeros(3, np.int64))


def test_a_restored_router_goes_on() -> None:
    stream = Stream(diagonal(4, 0.05, 1.0))
    routed, plain = pipelines(stream)
    run(stream, routed, plain, 60_000)
    router = ClassRouter.from_bytes(routed.router.to_bytes(), routed.router.learners.make, stream.attributes)
    again = RoutedPipeline(router, routed.filters, costs=np.ones(4), clock=no_clock)
    again.warm_up(np.ones(4), np.zeros(4))
    assert run(stream, again, plain, 20_000) > 0.4


class Kinds:
    """Rows of two kinds, each dropped most by a filter of its own, and the time of a clock of evaluations."""

    def __init__(self, first: int, second: int) -> None:
        self.mostly = first, second  # the filter that drops most of each kind
        self.now = 0.0
        self._random = np.random.default_rng(0)

    def filters(self) -> list[Filter]:
        def timed(number: int) -> Filter:
            def keeps(rows: np.ndarray) -> np.ndarray:
                self.now += 1e-6 * len(rows)
                return np.asarray(rows >> number & 1 == 0)

            return keeps

        return [timed(number) for number in range(6)]

    def run(self, routed: RoutedPipeline, rows: int) -> float:
        """Evaluations of a row, profiling included."""
        before = routed.evaluations + routed.extra_evaluations
        for _ in range(rows // 10_000):
            kinds = self._random.integers(0, 2, 10_000)
            drops = np.full((10_000, 6), 0.05)
            drops[np.arange(10_000), np.array(self.mostly)[kinds]] = 0.8
            masks = (self._random.random((10_000, 6)) < drops) @ (1 << np.arange(6))
            routed.keep(masks, {"kind": pa.array(kinds)})
        return (routed.evaluations + routed.extra_evaluations - before) / rows


def kinds_in_use(first: int = 0, second: int = 1) -> tuple[Kinds, RoutedPipeline]:
    stream = Kinds(first, second)
    router = ClassRouter(functools.partial(_a_greedy, 6), ["kind"])
    routed = RoutedPipeline(router, stream.filters(), clock=lambda: stream.now)
    assert stream.run(routed, 300_000) < 2
    assert router.in_use == ("kind",)
    return stream, routed


@pytest.mark.parametrize("mostly", [(4, 5), (3, 3)])
def test_a_change_is_followed_while_classes_are_in_use(mostly: tuple[int, int]) -> None:
    stream, routed = kinds_in_use()
    restarts = len(routed.restarts)
    stream.mostly = mostly
    stream.run(routed, 30_000)
    assert len(routed.restarts) > restarts
    assert stream.run(routed, 20_000) < 2.4  # 2.2 with one order that is right, 3.7 with the orders from before


def test_profiling_goes_on_when_a_classifier_is_dropped() -> None:
    """Classes have a larger share of the time for profiling, which a single order does not have to earn afterwards."""
    stream, routed = kinds_in_use()
    stream.mostly = 3, 3
    while routed.router.classifier is not None:
        stream.run(routed, 10_000)
    before = routed.router.overall.profile.seen
    stream.run(routed, 50_000)
    assert routed.router.overall.profile.seen > before + 20


def test_a_classifier_without_classes_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The halves of a sample may have classes where the whole sample has none."""
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = pipelines(stream)[0].router

    def none(_self: Chooser, cells: Cells) -> Classifier:
        return Classifier(cells, np.zeros(0, np.int64), np.zeros(0, np.int64), ((0, 1, 2, 3),))

    monkeypatch.setattr(Chooser, "fit", none)
    part = stream.next(2000)
    columns = {name: pa.array(values) for name, values in zip(stream.attributes, part.values.T, strict=True)}
    router.learn(part.masks, None, columns)
    assert any(estimate.saving > 0.4 for estimate in router.search.estimates)
    assert router.classifier is None
    assert not router.events


class Evaluations:
    """A clock of evaluations, with filters that look at a bit of each row."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def filter(self, number: int) -> Filter:
        def keep(rows: Integers) -> np.ndarray:
            self.now += 3e-6 * len(rows)
            return np.asarray(rows >> number & 1 == 0)

        return keep


def run_kinds(
    shares: Sequence[float], *, tells: bool, batches: int, flips: int | None = None
) -> tuple[RoutedPipeline, list[int]]:
    """Batches of 10,000 rows whose last kind another filter drops, if kinds tell; profile tuples after each batch.

    From batch `flips` on, the two filters have changed places.
    """
    random, clock, seen = np.random.default_rng(0), Evaluations(), list[int]()
    router = ClassRouter(lambda order: AGreedy(6, order=order), ["kind"])
    routed = RoutedPipeline(router, [clock.filter(number) for number in range(6)], clock=clock)
    for batch in range(batches):
        kinds = random.choice(len(shares), 10_000, p=shares)
        first = (kinds == len(shares) - 1).astype(int) if tells else np.zeros(10_000, int)
        first = 1 - first if flips is not None and batch >= flips else first
        drops = np.where(np.arange(6) == first[:, None], 0.8, 0.05)
        routed.keep((random.random(drops.shape) < drops) @ (1 << np.arange(6)), {"kind": pa.array(kinds)})
        seen.append(router.seen)
    return routed, seen


def test_profile_tuples_are_made_for_classes_only_where_values_tell_what_filters_drop() -> None:
    _, for_nothing = run_kinds([0.5, 0.47, 0.03], tells=False, batches=3)
    routed, for_a_class = run_kinds([0.5, 0.47, 0.03], tells=True, batches=12)
    assert for_nothing[-1] < 300  # the order alone has 200
    assert for_a_class[2] > 500
    assert routed.router.in_use == ("kind",)


def test_while_there_are_classes_profiling_spreads_over_batches() -> None:
    """A batch is profiled in every class or in none, and could take what profiling may take in five batches."""
    routed, seen = run_kinds([0.5, 0.5], tells=True, batches=30)
    assert routed.router.in_use == ("kind",)
    late = np.diff(seen)[-15:]
    assert late.max() < 2.5 * late.mean()


def test_a_rare_class_is_not_too_small_because_the_others_save_nothing() -> None:
    """300 rows of a batch save as much as twelve calls, though a row of a batch saves next to nothing on average."""
    routed, _ = run_kinds([0.5, 0.47, 0.03], tells=True, batches=20)
    router = routed.router
    assert router.in_use == ("kind",)
    rare = next(number for number, policy in enumerate(router.policies) if policy.order[0] == 1)
    saved = router.payoff.saved_by_row()
    assert 100 * saved[rare] > routed.call_costs.sum()


def test_when_classes_change_places_profiling_hurries_until_they_are_looked_for() -> None:
    """One batch used to take all that profiling may take in nine, and the look waited for the last few tuples."""
    routed, seen = run_kinds([0.5, 0.5], tells=True, batches=20, flips=15)
    before = seen[14]
    assert seen[17] - before >= FIRST_LOOK
    assert not routed.router.search.schedule.is_due
    assert [policy.order[0] for policy in routed.router.policies[1:]] in ([0, 1], [1, 0])
