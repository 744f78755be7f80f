"""What all tests of sessions share."""

from __future__ import annotations

import pytest

from thalweg.charts import TupleRates


@pytest.fixture(autouse=True)
def fixed_tuple_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's tuple rates: measuring them takes seconds, and plans must not depend on the machine."""
    monkeypatch.setattr("thalweg.spark.session.engine.tuple_rates", lambda _spark: TupleRates())
