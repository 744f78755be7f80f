"""What an act has measured: a number of plain Spark beside the same number of Thalweg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from thalweg_lab.demo.in_turns import PLAIN, THALWEG


@dataclass(frozen=True)
class Ratio:
    """Two numbers of the same kind, measured in the same run.

    >>> Ratio("rows a second", 10.0, 40.0).times
    4.0
    >>> Ratio("calls a row", 5.0, 2.0, is_better_if="less").times
    2.5
    """

    measure: str
    plain: float
    thalweg: float
    is_better_if: Literal["more", "less"] = "more"

    @property
    def times(self) -> float:
        """How many times better Thalweg is; less than one if it is worse."""
        better, worse = (self.thalweg, self.plain) if self.is_better_if == "more" else (self.plain, self.thalweg)
        return better / worse if worse else float("nan")

    @classmethod
    def of_rates(cls, measure: str, rates: Mapping[str, float]) -> Ratio:
        """The ratio of rates, of which more is better."""
        return cls(measure, rates[PLAIN], rates[THALWEG])


def require_same(measure: str, values: Mapping[str, object]) -> None:
    """Stop if the contenders have different results: then their times say nothing."""
    if values[PLAIN] != values[THALWEG]:
        raise AssertionError(f"{measure} differ: {dict(values)}")
