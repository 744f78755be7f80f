"""The candidate plans of a query, by the heuristics of om-plan-charts-2005, section 4.2.

1. The selections of an input are grouped in one σ. (The paper's example "a > 5 OR a < 10" must read AND.)
2. σ and π are pushed down to the input, in either order: two sub-plans for each input with selections. An input without
   selections has one sub-plan. π after σ keeps the columns that are read above; π before σ also keeps the columns that
   σ reads.
3. Joins are left-deep, over connected prefixes only: no Cartesian product. The first two inputs may come in either
   order without a difference, so each pair counts once. Where all inputs are streams, Thalweg's own join of many
   streams is one more candidate.
4. The aggregate comes last.

The sub-plan of an input and the order of the joins are chosen apart: which sub-plan is the cheaper does not depend on
what is done with its output, as long as operators keep up with their input, and but for columns that π before σ
carries along. So the costs of sub-plans and of join trees are compared apart, not those of all combinations, and
whole plans are put together from the choices (`PlanSpace.plan`). The number of join trees is bounded by `MOST_JOINS`;
where there are more, those are kept that are the cheapest most often in random settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from thalweg.charts.cost import CostModel
from thalweg.charts.equalities import implied_equalities
from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, Project, QueryPlan, Scan, Select
from thalweg.charts.statistics import RoundStatistics
from thalweg.joinorder import JoinGraph, JoinPredicate, JoinStream, QAware
from thalweg.joinorder.graph import DEFAULT_SELECTIVITY
from thalweg.joinorder.text import Attribute, Equality
from thalweg.sealed import short_digest
from thalweg.sql.query import ContinuousQuery, EquiJoin, QueryInput

MOST_INPUTS = 6  # 360 left-deep orders of a join in which all inputs are connected
MOST_JOINS = 64  # candidates that are costed for every region of a chart
TRIALS = 2_000  # random settings in which join orders compete where there are too many
TRIAL_RATES = (1.0, 1_000.0)  # tuples a second; of these settings


class PlanChoice(NamedTuple):
    """One plan of a `PlanSpace`: the number of its join tree, and of the sub-plan of each input."""

    join: int
    leaves: tuple[int, ...]


@dataclass(frozen=True)
class PlanSpace:
    """All plans of a query.

    `leaves` has the sub-plans of each input, σ → π first. `joins` are trees over bare scans of the inputs, with the
    aggregate; a query with one input has one such tree.
    """

    aliases: tuple[str, ...]
    leaves: tuple[tuple[PlanNode, ...], ...]
    joins: tuple[PlanNode, ...]
    window: float  # seconds

    def plan(self, choice: PlanChoice) -> QueryPlan:
        """The whole plan of a choice."""
        chosen = (leaves[number] for leaves, number in zip(self.leaves, choice.leaves, strict=True))
        return QueryPlan(self.joins[choice.join].with_leaves(dict(zip(self.aliases, chosen, strict=True))))

    @cached_property
    def candidates(self) -> tuple[QueryPlan, ...]:
        """The plans that compete: the sub-plans of a single input, or the join trees over the first sub-plans."""
        if len(self.aliases) == 1:
            choices = [PlanChoice(0, (number,)) for number in range(len(self.leaves[0]))]
        else:
            choices = [PlanChoice(number, (0,) * len(self.aliases)) for number in range(len(self.joins))]
        return tuple(self.plan(choice) for choice in choices)

    @cached_property
    def digest(self) -> str:
        """A short name for all of it: numbers of plans are only comparable between spaces with the same name."""
        return short_digest([str(node) for node in (*self.joins, *(leaf for each in self.leaves for leaf in each))])

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The aliases of inputs that are streams."""
        scans = (next(_scans(leaves[0])) for leaves in self.leaves)
        return tuple(scan.alias for scan in scans if scan.is_stream)


def candidate_plans(query: ContinuousQuery, *, equality_is_transitive: bool = True) -> tuple[QueryPlan, ...]:
    """The plans that compete: the sub-plans of a query with one input, or the join trees over the first sub-plans.

    At most `MOST_JOINS`. With several inputs, either sub-plan may take the place of the first (see above).
    """
    return plan_space(query, equality_is_transitive=equality_is_transitive).candidates


def plan_space(query: ContinuousQuery, *, equality_is_transitive: bool = True) -> PlanSpace:
    """All plans of a query.

    Parameters
    ----------
    query
        The query. Its inputs must be connected by equalities.
    equality_is_transitive
        Whether inputs may be joined by an equality that follows from the written equalities. That is right only where
        the columns of such equalities have one type: '1' = 1 and 1 = '01', but not '1' = '01'.
    """
    if len(query.inputs) > MOST_INPUTS:
        raise ValueError(
            f"a query has at most {MOST_INPUTS} inputs, not {len(query.inputs)}; split it into two queries"
        )
    implied = implied_equalities(query.equi_joins) if equality_is_transitive else ()
    joins: tuple[PlanNode, ...] = tuple(_left_deep_trees(query, implied))
    if not joins:
        names = ", ".join(each.alias for each in query.inputs)
        raise ValueError(f"no equalities connect all of {names}; join every input with another by column = column")
    window = query.window.length / 1e6
    if len(joins) > MOST_JOINS:
        joins = _most_often_cheapest(joins, query, window)
    if len(query.inputs) > 1 and all(each.is_stream for each in query.inputs):
        joins = (*joins[: MOST_JOINS - 1], _multi_join(query, implied))
    if query.is_aggregated:
        joins = tuple(Aggregate(join, query.group_by) for join in joins)
    leaves = tuple(tuple(_leaves(query, each)) for each in query.inputs)
    return PlanSpace(tuple(each.alias for each in query.inputs), leaves, joins, window)


def _leaves(query: ContinuousQuery, source: QueryInput) -> Iterator[PlanNode]:
    """Both orders of σ and π of an input, or its scan."""
    scan = Scan(source.alias, source.source, source.is_stream)
    selections = tuple(selection for selection in query.selections if selection.alias == source.alias)
    if not selections:
        yield scan
        return
    above = _columns_read_above(query)
    kept = tuple(column for column in source.columns if (source.alias, column) in above)
    yield Project(Select(scan, selections), source.alias, kept)
    yield Select(Project(scan, source.alias, source.columns), selections)


def _columns_read_above(query: ContinuousQuery) -> frozenset[tuple[str, str]]:
    """The columns that are read by anything but selections."""
    sides = (side for equality in query.equi_joins for side in (equality.left, equality.right))
    having = (query.having,) if query.having else ()
    outputs = (output.expression for output in query.outputs)
    return frozenset[tuple[str, str]]().union(
        *(each.columns for each in (*sides, *query.residuals, *query.group_by, *having, *outputs))
    )


def _left_deep_trees(query: ContinuousQuery, implied: tuple[EquiJoin, ...]) -> Iterator[PlanNode]:
    """All left-deep trees over connected prefixes, first pairs in the order of the FROM clause."""
    scans = {each.alias: Scan(each.alias, each.source, each.is_stream) for each in query.inputs}
    places = {alias: place for place, alias in enumerate(scans)}

    def grow(tree: PlanNode, prefix: tuple[str, ...]) -> Iterator[PlanNode]:
        if len(prefix) == len(scans):
            yield tree
            return
        for alias, scan in scans.items():
            mirrored = len(prefix) == 1 and places[alias] < places[prefix[0]]
            if alias not in prefix and not mirrored:
                join = _join(query, implied, tree, scan, frozenset(prefix))
                if join is not None:
                    yield from grow(join, (*prefix, alias))

    for alias, scan in scans.items():
        yield from grow(scan, (alias,))


def _join(
    query: ContinuousQuery, implied: tuple[EquiJoin, ...], tree: PlanNode, scan: Scan, prefix: frozenset[str]
) -> Join | None:
    """The join of a tree with one more input, or nothing if no equality connects them.

    All written equalities between them are tested. Only where there is none, an equality that follows
    from others is tested instead.
    """
    both = prefix | {scan.alias}
    written, following = (_between(equalities, prefix, scan.alias) for equalities in (query.equi_joins, implied))
    if not written and not following:
        return None
    tested, rest = (written, following) if written else (following[:1], following[1:])
    residuals = tuple(
        residual for residual in query.residuals if residual.inputs <= both and not residual.inputs <= prefix
    )
    return Join(tree, scan, tested, residuals, rest)


def _between(equalities: Iterable[EquiJoin], prefix: frozenset[str], alias: str) -> tuple[EquiJoin, ...]:
    """The equalities between an alias and others, with the side of the alias on the right."""
    found = []
    for equality in equalities:
        for left, right in ((equality.left, equality.right), (equality.right, equality.left)):
            if right.inputs == {alias} and left.inputs <= prefix:
                found.append(EquiJoin(left, right))
    return tuple(found)


def _multi_join(query: ContinuousQuery, implied: tuple[EquiJoin, ...]) -> MultiJoin:
    """Thalweg's own join, with the probe orders that Q-Aware finds for equal rates."""
    graph = JoinGraph(
        tuple(JoinStream(each.alias, rate=1.0, window=1.0) for each in query.inputs),
        tuple(
            JoinPredicate(left.stream, right.stream, DEFAULT_SELECTIVITY, equality=Equality(left, right))
            for left, right in (sorted(_attributes(equality)) for equality in (*query.equi_joins, *implied))
        ),
    )
    orders = QAware().plan(graph)
    scans = tuple(Scan(each.alias, each.source, each.is_stream) for each in query.inputs)
    probe_orders = tuple((name, *orders[name]) for name in graph.names)
    return MultiJoin(scans, probe_orders, query.equi_joins, query.residuals, implied)


def _attributes(equality: EquiJoin) -> Iterator[Attribute]:
    for side in (equality.left, equality.right):
        (alias,) = side.inputs
        yield Attribute(alias, side.sql)


def _most_often_cheapest(joins: tuple[PlanNode, ...], query: ContinuousQuery, window: float) -> tuple[PlanNode, ...]:
    """The join trees that need the least memory in the most random settings of rates and table sizes."""
    random = np.random.default_rng(0)
    lowest, highest = np.log(TRIAL_RATES).tolist()
    drawn = {each.alias: np.exp(random.uniform(lowest, highest, TRIALS)) for each in query.inputs}
    streams = {each.alias: drawn[each.alias] for each in query.inputs if each.is_stream}
    sizes = {each.alias: float(drawn[each.alias].mean()) * window for each in query.inputs if not each.is_stream}
    statistics, model = RoundStatistics(streams, table_sizes=sizes), CostModel(window)
    memory = np.array([join.flow(statistics, model).memory for join in joins])
    wins = np.bincount(memory.argmin(axis=0), minlength=len(joins))
    kept = sorted(np.argsort(-wins, kind="stable")[:MOST_JOINS].tolist())
    return tuple(joins[number] for number in kept)


def _scans(node: PlanNode) -> Iterator[Scan]:
    if isinstance(node, Scan):
        yield node
    for child in node.children:
        yield from _scans(child)
