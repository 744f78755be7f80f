"""The logical structure of a condition: conjunctions and disjunctions of parts, each part as it is or negated.

Negations of whole groups are pushed down to the parts by De Morgan's laws, which hold in three-valued logic too. Knows
neither Spark nor SQL: the caller says how a condition is made of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Connective = Literal["and", "or", "not"]
C = TypeVar("C")  # a condition, in whatever form the caller has it


@dataclass(frozen=True)
class Part(Generic[C]):
    """A condition that is not made of others, or its negation."""

    condition: C
    negated: bool

    @property
    def parts(self) -> Iterator[Part[C]]:
        """The part itself."""
        yield self


@dataclass(frozen=True)
class Group(Generic[C]):
    """A conjunction or a disjunction of members, which is a condition or its negation."""

    condition: C
    negated: bool
    is_disjunction: bool
    members: tuple[Part[C] | Group[C], ...]

    @property
    def parts(self) -> Iterator[Part[C]]:
        """All parts in the group, from left to right."""
        for member in self.members:
            yield from member.parts


def logic_of(
    condition: C, take_apart: Callable[[C], tuple[Connective, Sequence[C]] | None], *, negated: bool = False
) -> Part[C] | Group[C]:
    """The structure of a condition, of which `take_apart` tells the connective and the operands, or None of a part.

    >>> nested = {"NOT (a OR b)": ("not", ["a OR b"]), "a OR b": ("or", ["a", "b"])}
    >>> group = logic_of("NOT (a OR b)", nested.get)
    >>> group.is_disjunction, [(part.condition, part.negated) for part in group.parts]
    (False, [('a', True), ('b', True)])
    """
    found = take_apart(condition)
    if found is None:
        return Part(condition, negated)
    connective, operands = found
    if connective == "not":
        return logic_of(operands[0], take_apart, negated=not negated)
    is_disjunction = (connective == "or") is not negated
    members: list[Part[C] | Group[C]] = []
    for operand in operands:
        member = logic_of(operand, take_apart, negated=negated)
        is_same = isinstance(member, Group) and member.is_disjunction is is_disjunction
        members += member.members if isinstance(member, Group) and is_same else [member]
    return Group(condition, negated, is_disjunction, tuple(members))
