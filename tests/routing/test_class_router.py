import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from thalweg.drift import Watched
from thalweg.ordering import AGreedy, Policy
from thalweg.routing import ClassRouter
from thalweg.routing.saved import KIND, VERSION
from thalweg.routing.schedule import FIRST_LOOK
from thalweg.sealed import SavedStateError, dump_table, seal, unseal
from thalweg_lab.experiments.cbr.stream import Stream, diagonal


def make(order: Sequence[int] | None) -> Policy:
    return AGreedy(4, order=order)


def learn(router: ClassRouter, stream: Stream, tuples: int, batch: int = 50, *, blind: bool = False) -> None:
    """Show dropped tuples, all profiled; a blind attribute is made of random values."""
    random = np.random.default_rng(0)
    for _ in range(tuples // batch):
        part = stream.next(batch)
        dropped = part.masks > 0
        columns = dict(zip(stream.attributes, part.values[dropped].T, strict=True))
        if blind:
            columns["attrC"] = random.integers(0, 4, dropped.sum())
        router.learn(part.masks[dropped], None, {name: pa.array(column) for name, column in columns.items()})


def routed() -> tuple[ClassRouter, Stream]:
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(make, stream.attributes)
    learn(router, stream, 1000)
    return router, stream


def used(router: ClassRouter) -> list[str]:
    in_use = router.explain()["classifier"]
    return list(in_use["attributes"]) if in_use else []


def test_the_right_classifier_is_found_among_decoys() -> None:
    router, _ = routed()
    assert used(router) == ["attrC"]
    classes = router.classify({"attrC": pa.array([0, 1, 2, 3, None, 99], pa.int16())})
    assert [router.policies[number].order[0] for number in classes[:4].tolist()] == [0, 1, 2, 3]
    assert classes[4:].tolist() == [0, 0]
    explained = router.explain()
    assert explained["pruned"] == {
        "constant": "constant",
        "sequence": "grows or falls with time, as a sequence number or a timestamp does",
    }
    best = explained["candidates"][0]
    assert best["in_use"]
    assert best["saving"] > 0.4
    assert best["gain_ratio"] > 0.2
    columns = {candidate["attributes"][0] for candidate in explained["candidates"] if len(candidate["attributes"]) == 1}
    assert columns & set(router.attributes) == {"attrC", "fk1", "fk2", "fk3", "fk4"}  # all that was not pruned
    assert [event["what"] for event in explained["events"]] == ["routes by"]
    assert explained["memory_bytes"] < 7_000_000


def test_a_pair_of_attributes_is_found_where_neither_alone_tells_anything() -> None:
    router, random = ClassRouter(make, ["a", "b", "c"]), np.random.default_rng(0)
    for _ in range(50):
        values = random.integers(0, 2, (3, 100))
        router.learn(1 << (values[0] ^ values[2]), None, dict(zip("abc", map(pa.array, values), strict=True)))
    assert used(router) == ["a", "c"]
    alone = ClassRouter(make, ["a", "b", "c"], pairs=False)
    alone.search.sample = router.search.sample
    alone.look()
    assert used(alone) == []


@pytest.mark.parametrize("seed", range(5))
def test_without_skew_nothing_is_chosen(seed: int) -> None:
    stream = Stream(np.full((4, 4), 0.47), seed)
    router = ClassRouter(make, stream.attributes)
    learn(router, stream, 6000)
    assert router.classifier is None
    assert router.explain()["benefit"] is None
    assert len(router.policies) == 1


def test_a_classifier_that_stops_separating_is_dropped_at_once() -> None:
    router, stream = routed()
    learn(router, stream, 1000)
    assert router.explain()["benefit"] is not None
    seen = router.seen
    learn(router, stream, 400, blind=True)
    assert router.classifier is None
    dropped = router.events[-1]
    assert dropped["what"] == "stops routing by"
    assert "no longer separates" in dropped["why"]
    assert dropped["profile_tuples"] - seen <= 150
    assert len(router.search.sample) < 500  # nothing from before the change
    learn(router, stream, 1000)
    assert used(router) == ["attrC"]  # and it is found again


def test_without_a_detector_the_measured_benefit_decides() -> None:
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(make, stream.attributes, detector="none")
    learn(router, stream, 1000)
    assert used(router) == ["attrC"]
    learn(router, stream, 4000, blind=True)
    assert router.classifier is None
    assert "does not pay" in router.events[-1]["why"]


def test_splitting_that_costs_more_than_it_saves_is_switched_off() -> None:
    router, stream = routed()
    for _ in range(20):
        router.observe(1000, 950, overhead=10_000.0)  # ten filters a tuple
        learn(router, stream, 50)
    assert router.classifier is None
    assert "does not pay" in router.events[-1]["why"]
    rests = router.seen
    learn(router, stream, 1000)
    assert router.classifier is None  # for a while
    assert router.seen - rests < router.search.sample.window


def test_classes_follow_drift_of_their_own() -> None:
    """What class 0 wants changes; the other classes' orders stay."""
    router, _ = routed()
    changed = diagonal(4, 0.05, 1.0)
    changed[0] = [1.0, 1.0, 1.0, 0.05]
    learn(router, Stream(changed, 1), 8000)
    classes = router.classify({"attrC": pa.array([0, 1, 2])})
    assert [router.policies[number].order[0] for number in classes.tolist()] == [3, 1, 2]


def test_policies_may_be_watched() -> None:
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(lambda order: Watched(AGreedy(4, order=order)), stream.attributes)
    learn(router, stream, 2000)
    assert used(router) == ["attrC"]
    assert all(one.sampler is router.overall.sampler for one in router.policies)


def test_precedence_holds_in_every_class() -> None:
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(lambda order: AGreedy(4, order=order, after={0: [3]}), stream.attributes)
    learn(router, stream, 2000)
    assert used(router) == ["attrC"]
    assert all(one.order.index(3) < one.order.index(0) for one in router.policies)


def test_saved_and_restored_it_is_the_same() -> None:
    router, stream = routed()
    again = ClassRouter.from_bytes(router.to_bytes(), make, stream.attributes)
    columns = {"attrC": pa.array([0, 1, 2, 3, None])}
    assert again.classify(columns).tolist() == router.classify(columns).tolist()
    assert [one.order for one in again.policies] == [one.order for one in router.policies]
    assert again.search.sample.codes.tolist() == router.search.sample.codes.tolist()
    for what in ("events", "candidates", "pruned"):
        assert again.explain()[what] == router.explain()[what]
    learn(again, stream, 500)
    assert used(again) == ["attrC"]


def test_what_cannot_be_restored_says_why() -> None:
    router = ClassRouter(make, ["a"])
    saved = router.to_bytes()
    assert ClassRouter.from_bytes(saved, make, ["a"]).classifier is None
    with pytest.raises(SavedStateError, match="damaged or cut short"):
        ClassRouter.from_bytes(saved[:-40], make, ["a"])
    with pytest.raises(SavedStateError, match="of 4 filters and the columns"):
        ClassRouter.from_bytes(saved, make, ["b"])
    with pytest.raises(SavedStateError, match=f"has version {VERSION + 1}, and this Thalweg reads version {VERSION}"):
        ClassRouter.from_bytes(seal(KIND, VERSION + 1), make, ["a"])


def no_estimate(change: dict[str, object]) -> dict[str, object]:
    """An estimate with something that no estimate has."""
    cells = {"attributes": [0], "edges": [None]}
    numbers = {"saving": 0.5, "error": 0.1, "cost": 1.0, "gain_ratio": 0.2, "classes": 2, "savings": None}
    return {"estimates": [{"cells": cells, **numbers, **change}]}


NONSENSE: list[dict[str, object]] = [
    {"more": 1},
    {"attributes": [1]},
    {"attributes": []},
    {"filters": 0},
    {"filters": 10**9},
    {"filters": "4"},
    {"window": 1},
    {"window": 10**15},
    {"most_classes": 10**30},
    {"pairs": 1},
    {"seen": -1},
    {"due": 1 << 63},
    {"rest": None},
    {"tuples": 1.5},
    {"price": -1},
    {"price": "free"},
    {"widths": []},
    {"widths": ["a"] * 7},
    {"orders": []},
    {"orders": 5},
    {"orders": [[0, 1, 2]] * 5},
    {"orders": [[0, 1, 2, "3"]] * 5},
    {"cells": 5},
    {"cells": None},
    {"cells": {}},
    {"cells": {"attributes": [99], "edges": [None]}},
    {"cells": {"attributes": [0], "edges": []}},
    {"cells": {"attributes": [0], "edges": [["a"]]}},
    {"cells": {"attributes": [0], "edges": [[2, 1]]}},
    {"keys": [1]},
    {"keys": [4, 3, 2, 1]},
    {"keys": [1, 2, 3, 1 << 70]},
    {"keys": ["a", "b", "c", "d"]},
    {"classes": [1, 2, 3, 99]},
    {"classes": [0, 1, 2, 3]},
    {"estimates": [5]},
    no_estimate({"saving": "much"}),
    no_estimate({"cost": float("nan")}),
    no_estimate({"classes": None}),
    no_estimate({"cells": None}),
    {"pruned": {"a": 1}},
    {"pruned": []},
    {"events": [1]},
    {"events": [{"what": "routes by"}]},
]


@pytest.mark.parametrize("change", NONSENSE, ids=str)
def test_sealed_nonsense_is_refused(change: dict[str, object], saved_parts: list[bytes]) -> None:
    about = json.dumps(json.loads(saved_parts[0]) | change).encode()
    with pytest.raises(SavedStateError):
        ClassRouter.from_bytes(seal(KIND, VERSION, about, *saved_parts[1:]), make, Stream(np.ones((4, 4))).attributes)


def test_other_parts_than_saved_ones_are_refused(saved_parts: list[bytes]) -> None:
    about, table, *profiles = saved_parts
    attributes = Stream(np.ones((4, 4))).attributes
    for parts in (
        [],
        [about],
        [about, table],
        [about, b"", *profiles],
        [about, dump_table(pa.table({"mask": [1]})), *profiles],
        [about, table, *profiles[1:]],
        [about, table, *profiles, b"no profile"],
        [b"[]", table, *profiles],
        [b"{", table, *profiles],
    ):
        with pytest.raises(SavedStateError):
            ClassRouter.from_bytes(seal(KIND, VERSION, *parts), make, attributes)


@pytest.fixture(scope="module")
def saved_parts() -> list[bytes]:
    return unseal(KIND, VERSION, routed()[0].to_bytes())


def test_a_new_worker_begins_with_what_another_knows() -> None:
    router, stream = routed()
    new = ClassRouter(make, stream.attributes)
    new.learn_from(router)
    assert used(new) == ["attrC"]
    assert len(new.search.sample) == len(router.search.sample)
    learn(router, stream, 500)
    new.learn_from(router)  # it has grown, and holds what is known here already
    assert new.search.sample.codes.tolist() == router.search.sample.codes.tolist()
    with pytest.raises(ValueError, match="same filters and attributes"):
        new.learn_from(ClassRouter(make, ["other"]))


def test_memory_is_bounded_and_so_are_classes() -> None:
    stream = Stream(np.random.default_rng(0).choice([0.05, 1.0], (40, 4)))
    router = ClassRouter(make, stream.attributes, most_classes=3)
    learn(router, stream, 2000)
    first = router.explain()["memory_bytes"]
    learn(router, stream, 6000)
    assert len(router.policies) <= 4
    assert router.explain()["memory_bytes"] <= first + 3 * 4 * 50_000
    assert len(router.to_bytes()) < 2_000_000


def test_nested_columns_are_pruned_with_the_reason() -> None:
    router = ClassRouter(make, ["nested", "plain"])
    random = np.random.default_rng(0)
    for _ in range(10):
        plain = random.integers(0, 4, 100)
        router.learn(1 << plain, None, {"nested": pa.array([[1]] * 100), "plain": pa.array(plain)})
    assert used(router) == ["plain"]
    assert "list<item: int64>" in router.explain()["pruned"]["nested"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attributes": []}, "1 to 32 different column names"),
        ({"attributes": ["a", "a"]}, "1 to 32 different column names"),
        ({"window": 10}, f"at least {2 * FIRST_LOOK}, not 10"),
        ({"most_classes": 1}, "at least 2, not 1"),
        ({"detector": "bsc"}, "no detector 'bsc'"),
    ],
)
def test_bad_options_say_what_is_allowed(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassRouter(**{"make": make, "attributes": ["a"], **options})  # type: ignore[arg-type]


def test_new_values_get_classes_when_they_are_worth_it() -> None:
    """Two of four classes come later than the classifier is chosen."""
    stream = Stream(diagonal(4, 0.05, 1.0))
    router = ClassRouter(make, ["attrC", "noise"])
    random = np.random.default_rng(0)
    for batch in range(80):
        part = stream.next(100)
        early = (part.masks > 0) & ((part.values[:, 0] < 2) | (batch >= 15))
        noise = random.random(int(early.sum()))
        router.learn(part.masks[early], None, {"attrC": pa.array(part.values[early, 0]), "noise": pa.array(noise)})
    assert used(router) == ["attrC"]
    classes = router.classify({"attrC": pa.array([0, 1, 2, 3])})
    assert [router.policies[number].order[0] for number in classes.tolist()] == [0, 1, 2, 3]
    assert len(router.events) >= 2


def test_explain_is_plain_and_says_what_the_classes_are() -> None:
    router, stream = routed()
    learn(router, stream, 200)
    explained = json.loads(json.dumps(router.explain()))
    values = [one["values"] for one in explained["classes"]]
    assert sorted(one for each in values[1:] for one in each) == ["0", "1", "2", "3"]
    assert explained["benefit"]["saving"] == pytest.approx(0.55, abs=0.1)
    assert sum(one["cells"] or 0 for one in explained["classes"]) == explained["classifier"]["cells"] == 4


def test_wide_columns_are_pruned_but_encoded_ones_are_not() -> None:
    router, random = ClassRouter(make, ["wide", "encoded"]), np.random.default_rng(0)
    for _ in range(10):
        plain = random.integers(0, 4, 100)
        texts = pa.array([f"{number} " * 100 for number in plain])
        router.learn(1 << plain, None, {"wide": texts, "encoded": texts.dictionary_encode()})
    assert used(router) == ["encoded"]
    assert "wide: its values have 200 bytes" in router.explain()["pruned"]["wide"]


def test_an_order_to_begin_with() -> None:
    router = ClassRouter(make, ["a"])
    router.begin([3, 2, 1, 0])
    assert router.overall.order == (3, 2, 1, 0)
    router.learn([1], None, {"a": pa.array([1])})
    with pytest.raises(ValueError, match="make a new router"):
        router.begin([0, 1, 2, 3])


def test_looking_again_comes_soon() -> None:
    stream = Stream(np.full((4, 4), 0.47))
    router = ClassRouter(make, stream.attributes)
    learn(router, stream, 9000)
    router.search.schedule.look_again()
    seen = router.seen
    stream.selectivities = diagonal(4, 0.05, 1.0)
    learn(router, stream, 500)
    assert router.seen - seen < 600
    assert {one["in_use"] for one in router.explain()["candidates"]} <= {True, False}


def test_missing_columns_are_named() -> None:
    router = ClassRouter(make, ["a"])
    with pytest.raises(KeyError, match="no column 'a'; it has b"):
        router.learn([1], None, {"b": pa.array([1])})
    with pytest.raises(ValueError, match="no classes now"):
        router.classify({"a": pa.array([1])})


def test_profile_tuples_that_do_not_fit_are_refused() -> None:
    router = ClassRouter(make, ["key"])
    with pytest.raises(ValueError, match="between 0 and 15"):
        router.remember(np.array([99]), {"key": pa.array([1])})
    with pytest.raises(ValueError, match="'key' has 1 values for 3 rows"):
        router.learn([1, 2, 3], None, {"key": pa.array([1])})
