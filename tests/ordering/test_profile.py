import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import Profile
from thalweg.ordering.profile import KIND, TIME_CLIP, VERSION
from thalweg.sealed import SavedStateError, dump_table, seal, unseal

batches = st.lists(st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1)), max_size=9), max_size=6)


@given(batches, st.integers(1, 12))
def test_window_holds_the_newest(inserted: list[list[tuple[int, float]]], window: int) -> None:
    profile = Profile(3, window)
    for batch in inserted:
        profile.insert([mask for mask, _ in batch], [[time] * 3 for _, time in batch])
    everything = [one for batch in inserted for one in batch]
    assert profile.masks.tolist() == [mask for mask, _ in everything][-window:]
    assert profile.seen == len(everything)
    assert len(profile) == min(len(everything), window)


@given(st.lists(st.lists(st.floats(1, 2) | st.just(math.nan), min_size=2, max_size=2), min_size=1, max_size=40))
def test_averages_are_those_of_the_samples_in_the_window(times: list[list[float]]) -> None:
    """Samples between 1 and 2 are never clipped."""
    profile = Profile(2, window=7, costs=[5, 5])
    profile.insert([1] * len(times), times)
    for one in range(2):
        samples = [row[one] for row in times[-7:] if not math.isnan(row[one])]
        if samples:
            assert profile.mean_times[one] == pytest.approx(np.mean(samples))


def test_one_lost_processor_does_not_make_a_filter_expensive() -> None:
    profile = Profile(1, window=100)
    profile.insert([1] * 50, [[1.0]] * 50)
    profile.insert([1], [[1e6]])
    assert profile.mean_times[0] == pytest.approx((50 + TIME_CLIP) / 51)
    profile.insert([1] * 100, [[50.0]] * 100)
    assert profile.mean_times[0] == pytest.approx(50, rel=0.2)  # a lasting change gets through


def test_averages_stay_exact_over_many_turns() -> None:
    random = np.random.default_rng(0)
    profile = Profile(2, window=10)
    for _ in range(500):
        profile.insert([1] * 7, random.random((7, 2)) + 1)
    assert profile.mean_times == pytest.approx(profile.times.mean(axis=0), rel=1e-12)


def test_age_bounds_the_window() -> None:
    profile = Profile(1, window=100, max_age=10)
    profile.insert([1] * 4, stamps=[0, 5, 9, 15.5])
    assert profile.stamps.tolist() == [9, 15.5]


def test_untimed_profile_tuples_leave_the_averages_alone() -> None:
    profile = Profile(2, window=2, costs=[3, 4])
    profile.insert([1, 2, 3])
    assert profile.mean_times.tolist() == [3, 4]
    assert np.isnan(profile.times).all()


def test_clear_forgets_tuples_and_keeps_averages() -> None:
    profile = Profile(1, window=4)
    profile.insert([1, 1], [[2.0], [4.0]])
    profile.clear()
    assert len(profile) == 0
    assert profile.mean_times.tolist() == [3.0]
    profile.insert([0], [[9.0]])
    assert profile.mean_times.tolist() == [9.0]


@given(batches, batches, st.integers(1, 12))
def test_merge_keeps_the_newest_of_both(
    left: list[list[tuple[int, float]]], right: list[list[tuple[int, float]]], window: int
) -> None:
    profiles = Profile(3, window), Profile(3, window)
    for clock, (profile, inserted) in enumerate(zip(profiles, (left, right), strict=True)):
        for number, (mask, time) in enumerate(one for batch in inserted for one in batch):
            profile.insert([mask], [[time] * 3], stamps=[2 * number + clock])
    merged = profiles[0].merge(profiles[1])
    both = sorted(stamp for profile in profiles for stamp in profile.stamps)
    assert merged.stamps.tolist() == both[-window:]
    assert merged.seen == profiles[0].seen + profiles[1].seen


def test_merge_refuses_another_number_of_filters() -> None:
    with pytest.raises(ValueError, match="profiles of 2 and 3 filters cannot be merged"):
        Profile(2).merge(Profile(3))


def filled() -> Profile:
    random = np.random.default_rng(7)
    profile = Profile(5, window=20, max_age=1000, costs=[1, 2, 3, 4, 5])
    times = random.random((33, 5))
    times[::3] = np.nan
    profile.insert(random.integers(0, 32, 33), times)
    return profile


def test_saved_and_loaded_is_the_same() -> None:
    profile = filled()
    loaded = Profile.from_bytes(profile.to_bytes())
    assert loaded.masks.tolist() == profile.masks.tolist()
    np.testing.assert_array_equal(loaded.times, profile.times)
    np.testing.assert_array_equal(loaded.stamps, profile.stamps)
    assert loaded.mean_times == pytest.approx(profile.mean_times)
    assert (loaded.window, loaded.max_age, loaded.seen) == (20, 1000, 33)


def test_both_go_on_alike_after_loading() -> None:
    profile = filled()
    loaded = Profile.from_bytes(profile.to_bytes())
    for one in (profile, loaded):
        one.insert([1] * 30, np.full((30, 5), 2.0))
    assert loaded.masks.tolist() == profile.masks.tolist()
    assert loaded.mean_times == pytest.approx(profile.mean_times)


def test_empty_profile_survives_saving() -> None:
    assert len(Profile.from_bytes(Profile(63).to_bytes())) == 0


def test_any_damage_is_noticed() -> None:
    data = filled().to_bytes()
    for place in range(0, len(data), 17):
        broken = bytearray(data)
        broken[place] ^= 0x40
        with pytest.raises(SavedStateError):
            Profile.from_bytes(bytes(broken))
    for length in (0, 10, 40, len(data) - 1):
        with pytest.raises(SavedStateError):
            Profile.from_bytes(data[:length])


def test_another_version_is_refused() -> None:
    with pytest.raises(SavedStateError, match=f"has version {VERSION + 1}, and this Thalweg reads version {VERSION}"):
        Profile.from_bytes(seal(KIND, VERSION + 1))


def resealed(about: object = None, table: pa.Table | None = None) -> bytes:
    """A profile whose digest is right, with other fields or another table."""
    first, second = unseal(KIND, VERSION, filled().to_bytes())
    if isinstance(about, dict):
        about = json.loads(first) | about
    return seal(
        KIND,
        VERSION,
        first if about is None else json.dumps(about).encode(),
        second if table is None else dump_table(table),
    )


def table_of(masks: list[int | None], times: list[list[float]], stamps: list[float]) -> pa.Table:
    kinds = {"mask": pa.int64(), "times": pa.list_(pa.float64(), len(times[0])), "stamp": pa.float64()}
    return pa.table([masks, times, stamps], schema=pa.schema(kinds))


@pytest.mark.parametrize(
    "data",
    [
        seal(KIND, VERSION),
        seal(KIND, VERSION, b"{", b""),
        seal(KIND, VERSION, b"[" * 100_000, b""),
        resealed([]),
        resealed({"more": 1}),
        resealed({"filters": "5"}),
        resealed({"filters": 0}),
        resealed({"filters": 4}),
        resealed({"filters": 10**30}),
        resealed({"window": True}),
        resealed({"window": 0}),
        resealed({"window": 3}),
        resealed({"window": 10**15}),
        resealed({"seen": -1}),
        resealed({"seen": 1 << 63}),
        resealed({"max_age": "old"}),
        resealed({"max_age": -1}),
        resealed({"mean_times": [1, 2]}),
        resealed({"mean_times": ["a"] * 5}),
        resealed({"mean_times": [0] * 5}),
        resealed(table=pa.table({"mask": [1]})),
        resealed(table=table_of([1], [[1.0] * 4], [1.0])),
        resealed(table=table_of([None], [[1.0] * 5], [1.0])),
        resealed(table=table_of([32], [[1.0] * 5], [1.0])),
        resealed(table=table_of([-1], [[1.0] * 5], [1.0])),
        resealed(table=table_of([1], [[-1.0] * 5], [1.0])),
        resealed(table=table_of([1], [[1.0] * 5], [math.nan])),
    ],
)
def test_sealed_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(SavedStateError):
        Profile.from_bytes(data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filters": 64}, "between 1 and 63 filters"),
        ({"filters": 2, "window": 0}, "at least 1 profile tuple, not 0"),
        ({"filters": 2, "max_age": 0}, "positive span of time, not 0"),
        ({"filters": 2, "costs": [1]}, "2 positive numbers"),
        ({"filters": 2, "costs": [1, 0]}, "2 positive numbers"),
        ({"filters": 2, "costs": [1, math.nan]}, "2 positive numbers"),
    ],
)
def test_bad_bounds_say_what_is_allowed(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Profile(**arguments)


@pytest.mark.parametrize(
    ("masks", "times", "stamps", "message"),
    [
        ([4], None, None, "between 0 and 3"),
        ([-1], None, None, "between 0 and 3"),
        ([1], [[1.0]], None, r"times are \(1, 2\)"),
        ([1], [[1.0, -1.0]], None, "non-negative"),
        ([1], [[1.0, math.inf]], None, "non-negative"),
        ([1], None, [math.nan], "finite"),
    ],
)
def test_bad_profile_tuples_are_refused_whole(
    masks: list[int], times: list[list[float]] | None, stamps: list[float] | None, message: str
) -> None:
    profile = Profile(2)
    with pytest.raises(ValueError, match=message):
        profile.insert(masks, times, stamps)
    assert profile.seen == 0


@pytest.mark.parametrize("changed", [{"mean_times": [10**400]}, {"window": 1 << 26}, {"max_age": 10**400}])
def test_saved_numbers_that_no_profile_has_are_refused(changed: dict[str, object]) -> None:
    about, table = unseal(KIND, VERSION, Profile(1).to_bytes())
    with pytest.raises(SavedStateError):
        Profile.from_bytes(seal(KIND, VERSION, json.dumps(json.loads(about) | changed).encode(), table))
