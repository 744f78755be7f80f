"""Plans of a continuous query: frozen trees that can be printed, compared, costed and run.

A plan says how the rows of a round are found. The columns that the query puts out are the query's own and the same for
all its plans. Knows neither Spark nor charts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from thalweg.charts.cost import (
    Amount,
    CostModel,
    Flow,
    Weights,
    aggregated,
    joined,
    projected,
    selected,
    stored,
    streamed,
    utility,
)
from thalweg.charts.equalities import NamedEquality, joint_selectivity, named_equality
from thalweg.charts.statistics import RoundStatistics
from thalweg.sealed import short_digest
from thalweg.sql.query import EquiJoin, Expression, Selection

RESIDUAL_SELECTIVITY = 1 / 3  # of a join condition that is no equality, since System R
INDENT = "  "


class PlanNode(ABC):
    """An operator of a plan, with the operators below it."""

    @property
    @abstractmethod
    def children(self) -> tuple[PlanNode, ...]:
        """The operators whose output this operator reads."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The operator in one line."""

    @abstractmethod
    def with_children(self, *children: PlanNode) -> PlanNode:
        """The same operator over other operators."""

    @abstractmethod
    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """The operator's output and the memory used up to there, in a round with these statistics."""

    @cached_property
    def runs_alike(self) -> tuple[Any, ...]:
        """The same for two operators that Spark runs identically."""
        return (self.label, *(child.runs_alike for child in self.children))

    @cached_property
    def equalities(self) -> tuple[EquiJoin, ...]:
        """The equalities that hold for the output, written or not."""
        return _equalities_below(self)

    def with_leaves(self, leaves: Mapping[str, PlanNode]) -> PlanNode:
        """The tree in which the scan of an alias is replaced by another sub-plan."""
        return self.with_children(*(child.with_leaves(leaves) for child in self.children))

    def lines(self) -> Iterator[str]:
        """The tree, an operator a line, each below the operator that reads it."""
        yield self.label
        for child in self.children:
            yield from (INDENT + line for line in child.lines())

    def steps(self) -> Iterator[str]:
        """The operators in the order in which rows pass them, without the scans."""
        for child in self.children:
            yield from child.steps()
        yield self.label

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class Scan(PlanNode):
    """The rows of an input."""

    alias: str
    source: str
    is_stream: bool = True

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """None."""
        return ()

    @property
    def label(self) -> str:
        """The source, and the alias where it is another name."""
        kind = "stream" if self.is_stream else "table"
        return f"Scan {kind} {self.source}" + (f" as {self.alias}" if self.alias != self.source else "")

    def steps(self) -> Iterator[str]:
        """None: a scan is where rows come from."""
        return iter(())

    def with_children(self, *children: PlanNode) -> Self:
        """Itself."""
        return self

    def with_leaves(self, leaves: Mapping[str, PlanNode]) -> PlanNode:
        """The sub-plan for the alias, or this scan if there is none."""
        return leaves.get(self.alias, self)

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """All rows that arrive, or are stored."""
        size = model.input_sizes.get(self.alias, 1.0)
        if self.is_stream:
            return streamed(statistics.rates[self.alias], model.window, size)
        return stored(statistics.table_sizes.get(self.alias, 0.0), size)


@dataclass(frozen=True)
class Select(PlanNode):
    """σ: all selections of one input, in the order in which they are tested."""

    child: PlanNode
    selections: tuple[Selection, ...]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """The operator below."""
        return (self.child,)

    @property
    def label(self) -> str:
        """The conjunction."""
        return "Select " + conjunction(selection.expression.sql for selection in self.selections)

    def with_children(self, *children: PlanNode) -> Self:
        """The same selections over another operator."""
        return replace(self, child=children[0])

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """The rows that pass. The times of the selections add up, as if each were tested on every row."""
        seconds = sum(1.0 / getattr(model.tuple_rates, selection.kind) for selection in self.selections)
        selectivity = statistics.selectivities.get(self.selections[0].alias, 1.0)
        return selected(self.child.flow(statistics, model), selectivity, 1.0 / seconds, model.window)


@dataclass(frozen=True)
class Project(PlanNode):
    """π: some columns of one input."""

    child: PlanNode
    alias: str
    columns: tuple[str, ...]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """The operator below."""
        return (self.child,)

    @property
    def label(self) -> str:
        """The columns."""
        return f"Project {self.alias}: {', '.join(self.columns) or 'no columns'}"

    @cached_property
    def runs_alike(self) -> tuple[Any, ...]:
        """As without the projection: Catalyst itself moves projections to where they cost least."""
        return self.child.runs_alike

    def with_children(self, *children: PlanNode) -> Self:
        """The same columns of another operator."""
        return replace(self, child=children[0])

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """As many rows, of fewer columns."""
        size = model.projected_size(self.alias, self.columns)
        return projected(self.child.flow(statistics, model), size, model.tuple_rates.projection, model.window)


@dataclass(frozen=True)
class Join(PlanNode):
    """⋈: a binary join. Trees of joins are left-deep: the right child is one input.

    `equi_joins` and `residuals` are tested here. `implied` are further equalities between the two sides that hold
    because of those that are tested; they only sharpen the estimate.
    """

    left: PlanNode
    right: PlanNode
    equi_joins: tuple[EquiJoin, ...]
    residuals: tuple[Expression, ...] = ()
    implied: tuple[EquiJoin, ...] = ()

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """Left and right."""
        return (self.left, self.right)

    @property
    def label(self) -> str:
        """The condition."""
        return f"Join on {_condition(self.equi_joins, self.residuals)}"

    @cached_property
    def equalities(self) -> tuple[EquiJoin, ...]:
        """The equalities of both sides and those between them."""
        return (*_equalities_below(self), *self.equi_joins, *self.implied)

    @cached_property
    def _named(self) -> tuple[NamedEquality, ...]:
        return tuple(map(named_equality, self.equalities))

    @cached_property
    def _named_below(self) -> tuple[NamedEquality, ...]:
        return tuple(map(named_equality, _equalities_below(self)))

    def with_children(self, *children: PlanNode) -> Self:
        """The same join of other operators."""
        return replace(self, left=children[0], right=children[1])

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """The results; each row of either side probes the other side once."""
        left, right = self.left.flow(statistics, model), self.right.flow(statistics, model)
        before = joint_selectivity(self._named_below, statistics.join_selectivities)
        after = joint_selectivity(self._named, statistics.join_selectivities)
        selectivity = after / before * RESIDUAL_SELECTIVITY ** len(self.residuals) if before > 0.0 else 0.0
        return joined([left, right], left.rate + right.rate, selectivity, model.tuple_rates.equi_join, model.window)


@dataclass(frozen=True)
class MultiJoin(PlanNode):
    """Thalweg's own join of many streams in one operator: it holds the windows of all, and no intermediate results.

    The operator chooses its probe orders itself, while it runs. `probe_orders` are those by which its cost is
    estimated, one for each child, which begins with the child's alias (`thalweg.joinorder`).
    """

    inputs: tuple[PlanNode, ...]
    probe_orders: tuple[tuple[str, ...], ...]
    equi_joins: tuple[EquiJoin, ...]
    residuals: tuple[Expression, ...] = ()
    implied: tuple[EquiJoin, ...] = ()

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """All inputs."""
        return self.inputs

    @property
    def label(self) -> str:
        """The condition."""
        condition = _condition(self.equi_joins, self.residuals)
        return f"MultiJoin on {condition}, in probe orders that it chooses while it runs"

    @cached_property
    def equalities(self) -> tuple[EquiJoin, ...]:
        """All equalities."""
        return (*_equalities_below(self), *self.equi_joins, *self.implied)

    def with_children(self, *children: PlanNode) -> Self:
        """The same join of other operators."""
        return replace(self, inputs=children)

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """The results; rows probe in their stream's order, and so do the intermediate tuples they become.

        In a round, a combination of m rows is found by the last of them that arrived. So a stream's rows find the m-th
        part of the combinations of the first m streams of its order.
        """
        flows = [child.flow(statistics, model) for child in self.inputs]
        by_alias = {order[0]: flow for order, flow in zip(self.probe_orders, flows, strict=True)}
        work: Amount = 0.0
        for order in self.probe_orders:
            combinations: Amount = 1.0
            for place, alias in enumerate(order[:-1], start=1):
                combinations = combinations * by_alias[alias].rows
                named = self._named_among[frozenset(order[:place])]
                share = joint_selectivity(named, statistics.join_selectivities)
                work = work + combinations * (share / place / model.window)
        named = self._named_among[frozenset(self.probe_orders[0])]
        selectivity = joint_selectivity(named, statistics.join_selectivities)
        selectivity *= RESIDUAL_SELECTIVITY ** len(self.residuals)
        results = joined(flows, work, selectivity, model.tuple_rates.multi_join, model.window)
        windows = sum((flow.rows * flow.size for flow in flows), start=0.0)
        return results._replace(memory=results.memory + windows)

    @cached_property
    def _named_among(self) -> dict[frozenset[str], tuple[NamedEquality, ...]]:
        """The equalities between the first aliases of each probe order."""
        prefixes = {frozenset(order[:place]) for order in self.probe_orders for place in range(1, len(order) + 1)}
        return {
            among: tuple(
                named_equality(equality)
                for equality in self.equalities
                if equality.left.inputs | equality.right.inputs <= among
            )
            for among in prefixes
        }


@dataclass(frozen=True)
class Aggregate(PlanNode):
    """Ω: groups of rows; without `group_by` all rows are one group."""

    child: PlanNode
    group_by: tuple[Expression, ...]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """The operator below."""
        return (self.child,)

    @property
    def label(self) -> str:
        """The keys of the groups."""
        return f"Aggregate by {', '.join(key.sql for key in self.group_by)}" if self.group_by else "Aggregate all rows"

    def with_children(self, *children: PlanNode) -> Self:
        """The same groups of another operator's rows."""
        return replace(self, child=children[0])

    def flow(self, statistics: RoundStatistics, model: CostModel) -> Flow:
        """A row for each group."""
        child = self.child.flow(statistics, model)
        return aggregated(child, statistics.groups, model.tuple_rates.aggregate, model.window)


@dataclass(frozen=True)
class QueryPlan:
    """A whole plan."""

    root: PlanNode

    @cached_property
    def digest(self) -> str:
        """A short name for the plan, by its content."""
        return short_digest([str(self.root)])

    def cost(self, statistics: RoundStatistics, model: CostModel, weights: Weights) -> Amount:
        """The utility cost of the plan (section 3.2)."""
        return node_cost(self.root, statistics, model, weights)

    def __str__(self) -> str:
        return str(self.root)


def node_cost(node: PlanNode, statistics: RoundStatistics, model: CostModel, weights: Weights) -> Amount:
    """The utility cost of a plan or of a part of it."""
    flow = node.flow(statistics, model)
    return utility(flow.rate, flow.memory, weights)


def runs_alike(plan: QueryPlan) -> tuple[Any, ...]:
    """A key that two plans of one query share if Spark would run them identically.

    Catalyst turns σ → π and π → σ into the same physical plan, so the key leaves projections out. It keeps the join
    order, the join operator and the order of selections, which Catalyst keeps as well.
    """
    return plan.root.runs_alike


def _equalities_below(node: PlanNode) -> tuple[EquiJoin, ...]:
    return tuple(equality for child in node.children for equality in child.equalities)


def _condition(equi_joins: tuple[EquiJoin, ...], residuals: tuple[Expression, ...]) -> str:
    parts = [f"{equality.left.sql} = {equality.right.sql}" for equality in equi_joins]
    return conjunction([*parts, *(residual.sql for residual in residuals)])


def conjunction(conditions: Iterable[str]) -> str:
    """Conditions with AND between them, for people to read: with parentheses wherever there may be an OR outside.

    >>> conjunction(["a > 5", "b = 1 OR c = 1"])
    'a > 5 AND (b = 1 OR c = 1)'
    >>> conjunction(["b = 1 OR c = 1"])
    'b = 1 OR c = 1'
    """
    texts = list(conditions)
    if len(texts) == 1:
        return texts[0]
    return " AND ".join(f"({text})" if " OR " in text else text for text in texts)
