from thalweg.ordering.slices import SliceCounts, UntoldSlices


def counts(evaluated: list[int]) -> SliceCounts:
    return SliceCounts(evaluated, [number // 2 for number in evaluated], [float(number) for number in evaluated])


def test_counts_of_a_replaced_order_are_forgotten_from_the_first_changed_position_on() -> None:
    untold = UntoldSlices(3)
    untold.add(counts([80, 40, 20]), order=(0, 1, 2))
    untold.add(counts([80, 20, 40]), order=(0, 2, 1))
    assert untold.take(order=(0, 2, 1)) == counts([160, 20, 40])


def test_counts_are_of_the_order_at_the_time_of_telling() -> None:
    untold = UntoldSlices(3)
    untold.add(counts([80, 40, 20]), order=(0, 1, 2))
    assert untold.take(order=(1, 0, 2)) == counts([0, 0, 0])
