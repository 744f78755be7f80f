import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.charts.cost import (
    CostModel,
    TupleRates,
    Weights,
    aggregated,
    joined,
    projected,
    selected,
    stored,
    streamed,
    utility,
)

rates = st.floats(1e-3, 1e6)
shares = st.floats(1e-6, 1.0)


def test_figure_2_has_the_output_rates_of_the_paper() -> None:
    stream = streamed(100.0, 5.0)
    first = selected(selected(stream, 0.5, 500.0, 5.0), 0.1, 50.0, 5.0)
    second = selected(selected(stream, 0.1, 50.0, 5.0), 0.5, 500.0, 5.0)
    assert (first.rate, second.rate) == (5.0, 2.5)


def test_figure_2_has_its_memory_with_one_window_of_input_and_queues_without_the_bound() -> None:
    rate, window = 100.0, 5.0

    def memory(*selectivities: float) -> float:
        """A window of input, and a queue behind each operator that keeps up with any input."""
        queues = np.cumprod(selectivities) * rate * window
        return float(rate * window + queues.sum())

    assert memory(0.5, 0.1) == pytest.approx(775)
    assert memory(0.1, 0.5) == pytest.approx(575)


def test_section_4_1_gives_figure_2_other_memory_for_every_window() -> None:
    for window in (1.0, 5.0):
        stream = streamed(100.0, window)
        first = selected(selected(stream, 0.5, 500.0, window), 0.1, 50.0, window)
        second = selected(selected(stream, 0.1, 50.0, window), 0.5, 500.0, window)
        assert first.memory == pytest.approx((20 + 50 + 50 + 5) * window)
        assert second.memory == pytest.approx((200 + 5 + 0.05 + 2.5) * window)


@pytest.mark.parametrize(
    ("weights", "first", "second"), [(Weights(0.1, 0.9), 697.52, 517.54), (Weights(20000, 2), 5550, 9150)]
)
def test_utilities_of_section_3_2(weights: Weights, first: float, second: float) -> None:
    assert utility(5.0, 775.0, weights) == pytest.approx(first)
    assert utility(2.5, 575.0, weights) == pytest.approx(second)
    both = utility(np.array([5.0, 2.5]), np.array([775.0, 575.0]), weights)
    assert both == pytest.approx(np.array([first, second]))


def test_no_output_costs_infinitely_much_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert utility(0.0, 1.0, Weights()) == math.inf
        assert np.asarray(utility(np.array([0.0, 1.0]), np.ones(2), Weights(0, 1))).tolist() == [math.inf, 1.0]


@given(rates, shares, rates, st.floats(0.01, 100.0))
def test_a_selection_emits_what_it_can_process_and_buffers_what_arrives_meanwhile(
    rate: float, selectivity: float, tuple_rate: float, window: float
) -> None:
    flow = selected(streamed(rate, window), selectivity, tuple_rate, window)
    assert flow.rate == pytest.approx(selectivity * min(rate, tuple_rate))
    assert flow.memory == pytest.approx(rate * (rate * window / tuple_rate) + float(flow.rate) * window)
    array = selected(streamed(np.array([rate]), window), np.array([selectivity]), tuple_rate, window)
    assert array.rate == pytest.approx(np.array([flow.rate]))
    assert array.memory == pytest.approx(np.array([flow.memory]))


@given(rates, shares, shares, st.floats(1.0, 1e4), st.floats(1.0, 1e4))
def test_counted_in_tuples_a_selection_before_the_projection_is_never_worse_while_both_keep_up(
    rate: float, selectivity: float, weight: float, select_room: float, project_room: float
) -> None:
    select_rate, project_rate = rate * select_room, rate * project_room
    stream, weights = streamed(rate, 1.0), Weights(weight, 1.0)
    first = projected(selected(stream, selectivity, select_rate, 1.0), 1.0, project_rate, 1.0)
    second = selected(projected(stream, 1.0, project_rate, 1.0), selectivity, select_rate, 1.0)
    assert utility(first.rate, first.memory, weights) <= utility(second.rate, second.memory, weights) * (1 + 1e-9)


def test_a_join_that_keeps_up_emits_all_results_of_a_round_and_no_more() -> None:
    left, right = streamed(100.0, 2.0), streamed(50.0, 2.0)
    flow = joined([left, right], 150.0, 0.01, 3000.0, 2.0)
    assert flow.rows == pytest.approx(0.01 * 200 * 100)
    assert flow.rate == pytest.approx(0.01 * 100 * 50 * 2)  # the paper's numerator
    slow = joined([left, right], 150.0, 0.01, 75.0, 2.0)
    assert slow.rate == pytest.approx(0.01 * 100 * 50 * 2 / (100 / 75 + 50 / 75))  # the paper's formula


def test_a_table_adds_rows_but_no_arrivals() -> None:
    flow = joined([streamed(100.0, 1.0), stored(1000.0)], 100.0, 0.001, 3000.0, 1.0)
    assert flow.rate == pytest.approx(100.0)
    assert flow.is_stream
    tables = joined([stored(10.0), stored(20.0)], 0.0, 0.1, 3000.0, 1.0)
    assert (tables.rate, tables.rows, tables.memory, tables.is_stream) == (0.0, 20.0, 20.0, False)


def test_an_aggregate_puts_out_its_groups_once_a_round() -> None:
    assert aggregated(streamed(100.0, 2.0), 10.0, 1e6, 2.0).rate == pytest.approx(5.0)
    assert aggregated(streamed(1.0, 2.0), 10.0, 1e6, 2.0).rows == pytest.approx(2.0)
    busy = aggregated(streamed(100.0, 2.0), 1.0, 50.0, 2.0)
    assert busy.rate == pytest.approx(1 / (1 / 50 * 100 * 2))  # the paper's formula


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Weights(0, 0), "one of the weights must be above 0"),
        (lambda: Weights(math.nan, 1), "the rate weight is a number, 0 or more"),
        (lambda: TupleRates(equi_join=0), "the tuple rate 'equi_join' is a number above 0"),
        (lambda: TupleRates.from_json({"equality": 1}), "tuple rates are numbers for aggregate"),
        (lambda: CostModel(0), "the window is a number of seconds above 0"),
        (lambda: CostModel(1, projected_sizes={"T": 2}), "the projected size of T is a share"),
        (lambda: CostModel(1, column_sizes={"T": {"a": 0.6, "b": 0.4}}), "the columns of T take shares"),
    ],
)
def test_bad_values_are_refused(make: "type[object]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
