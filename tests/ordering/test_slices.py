from thalweg.ordering.slices import FIRST_SLICE, SliceCounts, SliceSizes, UntoldSlices


def counts(evaluated: list[int]) -> SliceCounts:
    return SliceCounts(evaluated, [number // 2 for number in evaluated], [float(number) for number in evaluated])


def test_a_slice_after_a_change_is_as_long_at_the_start_of_a_batch_as_elsewhere() -> None:
    sizes = SliceSizes()
    sizes.note(10_000, seconds=0.1)
    sizes.begin_small()
    assert sizes.choose(10_000, seconds=0.01, part=0.2) == FIRST_SLICE


def test_counts_of_filters_that_moved_are_forgotten() -> None:
    untold = UntoldSlices(3)
    untold.add(counts([80, 40, 20]), order=(0, 1, 2))
    untold.add(counts([80, 20, 40]), order=(0, 2, 1))
    assert untold.take(order=(0, 2, 1)) == counts([160, 20, 40])


def test_counts_are_of_the_order_at_the_time_of_telling() -> None:
    untold = UntoldSlices(3)
    untold.add(counts([80, 40, 20]), order=(0, 1, 2))
    assert untold.take(order=(1, 0, 2)) == counts([0, 0, 20])  # the same rows reach the last filter
