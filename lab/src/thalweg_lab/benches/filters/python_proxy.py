"""python-proxy: P1 drops half of the rows, and P2 drops these rows and more, at the same cost.

Behind P1, P2 drops 48 per cent of the rows it sees, less than P1's 50: it looks poor, but running it first is best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Make, Tick, compete
from thalweg_lab.benches.filters.work import InOrder, Test, bytes_of, predicates_of
from thalweg_lab.results import Result, exactly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "python-proxy"
ROWS, ROUNDS = 500_000, 9
SECONDS = 4e-6  # a row, each predicate
KEEPS = (0.5, 0.26)

MARGINAL = "marginal-rank"
BY_HAND, AS_WRITTEN = "the fused optimum, by hand", "the fused optimum, as-written"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Whether the optimum is reached, and by how much that beats policies that rank predicates one by one."""
    import thalweg as tw

    load = round(bytes_of(SECONDS))
    tests = [Test(0, load, high=keep) for keep in KEEPS]  # with the same salt, P1 keeps all rows that P2 keeps
    written = predicates_of(tests)
    best = tests[::-1]

    def adaptive(policy: str, into: list[Any] | None = None) -> Make:
        def filtered(frame: DataFrame) -> DataFrame:
            kept = tw.where(frame, *written, policy=policy)
            if into is not None:
                into[:] = [kept]
            return kept

        return filtered

    last: list[Any] = []
    contenders = {
        THALWEG: adaptive("a-greedy", last),
        AGAIN: adaptive("a-greedy"),
        MARGINAL: adaptive(MARGINAL),
        BY_HAND: lambda frame: plain.chain(frame, [InOrder(best)]),
        AS_WRITTEN: lambda frame: tw.where(frame, *written[::-1], policy="as-written"),
    }
    note = f"{rows:,} rows, cold, both about {SECONDS * 1e6:g} µs a row"
    frame, small = spark.range(0, rows, 1, 2), spark.range(0, rows // 20, 1, 2)
    found = compete(NAME, frame, contenders, rounds, tick, note, small=small)
    order = " ".join(tw.explain(last[0]).wheres[0]["order"])
    return [
        exactly(NAME, "order in the end", order, "P2 P1", "written P1 P2; of the last round"),
        found.faster(found.best(BY_HAND, AS_WRITTEN), 0.95),
        found.faster(MARGINAL, 1.1),
        found.control(),
    ]
