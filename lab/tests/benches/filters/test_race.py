from __future__ import annotations

from typing import Any

import pytest

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Measurement, Race, compete, race


def made(**seconds: list[float]) -> Race:
    return Race("steady", {THALWEG: [1.0, 2.0, 1.0], AGAIN: [1.0, 2.0, 1.1], **seconds}, "few rows", "small")


def test_ratios_are_medians_of_rounds() -> None:
    result = made(plain=[3.0, 2.0, 9.0]).faster("plain", 5)
    assert (result.value, result.target, result.holds) == (3.0, ">= 5", False)
    assert result.measure == f"small: {THALWEG}, times as fast as plain"
    assert "few rows; median of 3 rounds, 1.00..9.00" in result.note


def test_slower_is_the_inverse() -> None:
    assert made(optimum=[1.0, 1.0, 0.5]).slower("optimum", 1.1).value == 2.0


def test_later_is_in_milliseconds() -> None:
    assert made(plain=[0.9, 0.98, 0.97]).later("plain", 50).value == pytest.approx(30)
    assert made(plain=[0.9, 0.98, 0.97]).apart("plain", THALWEG, 50).value == pytest.approx(30)


def test_control_and_best() -> None:
    found = made(other=[0.5, 9.0, 0.6])
    assert found.control().holds
    assert found.best(THALWEG, "other") == "other"


def test_rounds_are_added_while_the_control_is_apart_from_itself() -> None:
    def rounds(plain: float, plain_again: float, tested: float) -> int:
        times = {"plain": plain, "plain again": plain_again, THALWEG: tested}
        contenders = {name: lambda seconds=seconds: Measurement(1, None, seconds) for name, seconds in times.items()}
        control = "plain", "plain again"
        found = race("steady", contenders, 3, lambda *_: None, "", most_rounds=7, control=control)
        return len(found.seconds[THALWEG])

    assert rounds(1.0, 1.0, 1.0) == rounds(1.0, 1.04, 9.0) == 3
    assert rounds(1.0, 1.06, 1.0) == 7


def test_rounds_are_added_while_the_control_varies() -> None:
    times = iter([1.0, 2.0, 0.5, 1.5, 0.7, 1.8, 1.2])
    contenders = {"a": lambda: Measurement(1, None, 1.0), "b": lambda: Measurement(1, None, next(times))}
    found = race("steady", contenders, 3, lambda *_: None, "", most_rounds=7, control=("a", "b"))
    assert len(found.seconds["a"]) == 7


def test_a_contender_is_compared_with_both_runs_of_another() -> None:
    found = Race("steady", {"tested": [2.0, 4.0], "plain": [1.0, 2.0], "again": [4.0, 8.0]}, "few rows")
    result = found.slower_than_both("plain", "again", 1.1, "tested")
    assert result.value == pytest.approx(1.0)
    assert result.note.endswith("plain against itself 4.00")


def test_every_contender_runs_once_a_round() -> None:
    calls: list[str] = []

    def contender(name: str) -> Measurement:
        calls.append(name)
        return Measurement(1, 2, 0.5)

    found = race("steady", {name: lambda name=name: contender(name) for name in "abc"}, 4, lambda *_: None, "")  # type: ignore[misc]
    rounds = ["".join(calls[start : start + 3]) for start in range(0, 12, 3)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len(set(rounds)) > 1
    assert found.seconds == {name: [0.5] * 4 for name in "abc"}


def test_different_rows_are_an_error() -> None:
    with pytest.raises(AssertionError, match="different rows"):
        race(
            "wrong", {"a": lambda: Measurement(1, 2, 0.1), "b": lambda: Measurement(1, 3, 0.1)}, 1, lambda *_: None, ""
        )


class Kept:
    """A DataFrame that has no rows."""

    def selectExpr(self, *_: str) -> Kept:  # noqa: N802 - as PySpark has it
        return self

    def collect(self) -> list[tuple[int, None]]:
        return [(0, None)]


def test_a_dataframe_may_be_made_for_each_run() -> None:
    made: list[Kept] = []
    seen: list[Any] = []

    def fresh() -> Any:  # noqa: ANN401 - in place of a DataFrame
        made.append(Kept())
        return made[-1]

    def keep(frame: Any) -> Any:  # noqa: ANN401 - as above
        seen.append(frame)
        return frame

    found = compete("steady", fresh, {"a": keep, "b": keep}, 3, lambda *_: None, "")
    assert len(set(map(id, made))) == 2 * (1 + 3)  # with the untimed round
    assert seen == made
    assert [len(seconds) for seconds in found.seconds.values()] == [3, 3]
