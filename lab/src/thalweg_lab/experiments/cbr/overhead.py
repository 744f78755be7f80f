"""Figure 9: the time that routing and statistics take, and the bytes that they store.

In the paper a routing decision takes 2.2 microseconds with Selectivity and 2.4 with Content-Learns, 1.75% of the time
that a call takes in all. Here routers decide for batches, so a decision takes less; shares are of the same call.

Beyond the paper, class orders are timed against one order, with predicates that would take 5 microseconds a row: their
time is added to the clock, all else is measured.
"""

import time
from collections.abc import Callable
from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.cbr.contest import KNOWS, LEARNS, SELECTIVITY
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering.types import Booleans, Integers
    from thalweg_lab.experiments.cbr.stream import Stream

CONTESTANTS = (SELECTIVITY, KNOWS, LEARNS)
CLASS_ORDERS = "class orders"
MICROSECONDS = 2.2 / 0.0175  # of a call, routing included
SHARE = 1.75  # per cent of the time
BYTES = 4864  # at 4 bytes a number
NUMBER = 8  # bytes that a number has here
PREDICATE = 5e-6  # seconds a row, of a predicate that class orders are for
OPERATORS, ROWS = 8, 5000  # of the streams that class orders are timed on; rows of a batch
KINDS = {"skew 5/100": (0.05, 1.0), "no skew": (0.688, 0.688)}
SPEED = {"skew 5/100": 2.0, "no skew": 0.98}  # times the speed of one order, at least


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Streams of table 6 with A = 15%."""
    from thalweg_lab.experiments.cbr.stream import TUPLES, A, B

    seeds = range(1 if quick else 5)
    routers = [
        {"operators": n, "a": A[1], "b": B[n][1], "tuples": TUPLES, "seed": seed}
        for n in (2, 4, 6, 8)
        for seed in seeds
    ]
    return [*routers, *({"kind": kind, "tuples": 10 * TUPLES, "seed": seed} for kind in KINDS for seed in seeds)]


def measure(setting: Setting) -> list[Row]:
    """One stream: a row for each router, or a row for class orders."""
    return _measure_classes(setting) if "kind" in setting else _measure_routers(setting)


def _measure_routers(setting: Setting) -> list[Row]:
    from thalweg.kernels import compile_kernels
    from thalweg_lab.experiments.cbr.contest import contest
    from thalweg_lab.experiments.cbr.stream import Stream, diagonal

    compile_kernels()
    selectivities = diagonal(setting["operators"], setting["a"] / 100, setting["b"] / 100)
    contest(Stream(selectivities, 1), 10_000, CONTESTANTS)  # loads the compiled code
    counts = contest(Stream(selectivities, setting["seed"]), setting["tuples"], CONTESTANTS, setting["seed"])
    return [
        {
            "operators": setting["operators"],
            "seed": setting["seed"],
            "router": name,
            "microseconds": 1e6 * counted.seconds / counted.calls,
            "bytes": counted.nbytes,
        }
        for name, counted in counts.items()
    ]


def _measure_classes(setting: Setting) -> list[Row]:
    from thalweg.kernels import compile_kernels
    from thalweg_lab.experiments.cbr.stream import Stream, diagonal

    compile_kernels()
    selectivities = diagonal(OPERATORS, *KINDS[setting["kind"]])
    for a, b in KINDS.values():  # loads the compiled code
        timed(Stream(diagonal(OPERATORS, a, b)), setting["tuples"] // 4, routed=True)
    one_order, _ = timed(Stream(selectivities, setting["seed"]), setting["tuples"], routed=False)
    classes, nbytes = timed(Stream(selectivities, setting["seed"]), setting["tuples"], routed=True)
    return [
        {
            "router": CLASS_ORDERS,
            "kind": setting["kind"],
            "seed": setting["seed"],
            "speed": one_order / classes,
            "bytes": nbytes,
        }
    ]


def timed(stream: "Stream", tuples: int, *, routed: bool) -> tuple[float, int]:
    """Seconds that a stream takes with class orders or with one order, and the memory of the classes."""
    import pyarrow as pa

    from thalweg.ordering import AGreedy
    from thalweg.ordering.pipeline import Pipeline
    from thalweg.routing import ClassRouter, RoutedPipeline

    predicates: float = 0.0

    def clock() -> float:
        return time.perf_counter() + predicates

    def slow(number: int) -> "Callable[[Integers], Booleans]":
        def keep(masks: "Integers") -> "Booleans":
            nonlocal predicates
            predicates += PREDICATE * len(masks)
            kept: Booleans = masks >> number & 1 == 0
            return kept

        return keep

    filters = [slow(number) for number in range(stream.operators)]
    router = ClassRouter(lambda order: AGreedy(stream.operators, order=order), stream.attributes)
    line = RoutedPipeline(router, filters, clock=clock)
    plain = Pipeline(AGreedy(stream.operators), filters, clock=clock)
    spent = 0.0
    for _ in range(0, tuples, ROWS):
        part = stream.next(ROWS)
        columns = dict(zip(stream.attributes, map(pa.array, part.values.T), strict=True))
        before = clock()
        kept = line.keep(part.masks, columns) if routed else plain.keep(part.masks)
        spent += clock() - before
        if not (kept == (part.masks == 0)).all():
            raise AssertionError("the kept rows depend on the order")
    return spent, router.nbytes


def judge(rows: list[Row]) -> list[Result]:
    """Shares of time, bytes, and the time that class orders add to a pipeline with one order."""

    def of(router: str, column: str, operators: int | None = None) -> float:
        own = [row for row in rows if row["router"] == router]
        return float(mean(row[column] for row in own if operators in {None, row.get("operators")}))

    most = max(row["operators"] for row in rows if "operators" in row)
    each = ", ".join(f"{name} {of(name, 'microseconds'):.2f}" for name in (SELECTIVITY, KNOWS, LEARNS))
    tables = of(LEARNS, "bytes", most) - 2 * NUMBER * most  # the operators' own counts, which the paper leaves out
    classes = [row for row in rows if row["router"] == CLASS_ORDERS]
    return [
        at_most(
            "all",
            f"per cent of the time, {name}",
            100 * of(name, "microseconds") / MICROSECONDS,
            SHARE,
            f"microseconds a routing decision: {each}; in batches of 500 tuples",
        )
        for name in (SELECTIVITY, LEARNS)
    ] + [
        at_most(
            f"N = {most}",
            "bytes of Content-Learns' matrices and tables, at 4 bytes a number",
            tables * 4 / NUMBER,
            BYTES,
            f"{tables:.0f} with doubles; the paper's 4-byte doubles are a slip. The profiled operator has no table",
        ),
        *(
            at_least(
                f"class orders, {kind}",
                "speed over that of one order, predicates of 5 microseconds a row",
                mean(row["speed"] for row in classes if row["kind"] == kind),
                least,
                f"beyond the paper; learning included, with {max(row['bytes'] for row in classes) / 1e6:.1f} MB",
            )
            for kind, least in SPEED.items()
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Microseconds a routing decision."""
    axes = figure.subplots()
    rows = [row for row in rows if row["router"] != CLASS_ORDERS]
    numbers = sorted({row["operators"] for row in rows})
    for name in (SELECTIVITY, KNOWS, LEARNS):
        means = [
            mean(row["microseconds"] for row in rows if row["router"] == name and row["operators"] == n)
            for n in numbers
        ]
        axes.plot(numbers, means, marker="o", label=name)
    axes.set_xlabel("operators")
    axes.set_ylabel("microseconds a routing decision, statistics included")
    axes.set_ylim(bottom=0)
    axes.legend()


EXPERIMENT = Experiment(
    id="cbr-overhead",
    title="The overhead of routing and statistics",
    source="content-based-routing-2004, figure 9",
    claim="Routing and statistics take about 1.75% of the time; storage is 4864 bytes at N = 8",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
