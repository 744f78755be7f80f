from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.split.logic import Group, Part, logic_of

NAMES = "abcd"
Tree = Any  # a name, or a connective with the list of its operands
trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("not"), st.lists(inner, min_size=1, max_size=1)),
    ),
    max_leaves=12,
)
rows = st.fixed_dictionaries({name: st.sampled_from([True, False, None]) for name in NAMES})


def take_apart(tree: Tree) -> Any:  # noqa: ANN401
    return None if isinstance(tree, str) else tree


def conjunction(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def negation(value: bool | None) -> bool | None:  # noqa: FBT001
    return None if value is None else not value


def value_of(tree: Tree, row: dict[str, bool | None]) -> bool | None:
    if isinstance(tree, str):
        return row[tree]
    connective, operands = tree
    values = [value_of(operand, row) for operand in operands]
    if connective == "not":
        return negation(values[0])
    return conjunction(values) if connective == "and" else negation(conjunction(list(map(negation, values))))


def value_of_logic(logic: Part[Tree] | Group[Tree], row: dict[str, bool | None]) -> bool | None:
    if isinstance(logic, Part):
        value = row[logic.condition]
        return negation(value) if logic.negated else value
    values = [value_of_logic(member, row) for member in logic.members]
    return negation(conjunction(list(map(negation, values)))) if logic.is_disjunction else conjunction(values)


@given(trees, rows)
def test_the_structure_has_the_value_of_the_condition(tree: Tree, row: dict[str, bool | None]) -> None:
    assert value_of_logic(logic_of(tree, take_apart), row) == value_of(tree, row)


@given(trees)
def test_groups_alternate_and_know_their_condition(tree: Tree) -> None:
    def check(logic: Part[Tree] | Group[Tree]) -> None:
        if isinstance(logic, Group):
            assert logic_of(logic.condition, take_apart, negated=logic.negated) == logic
            for member in logic.members:
                assert isinstance(member, Part) or member.is_disjunction is not logic.is_disjunction
                check(member)

    check(logic_of(tree, take_apart))
