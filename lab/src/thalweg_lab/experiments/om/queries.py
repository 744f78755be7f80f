"""The queries of the paper's Table 2, and others of their kind over flights and weather, as values."""

from collections.abc import Sequence
from typing import Literal

from thalweg.sql.query import (
    ContinuousQuery,
    EquiJoin,
    Expression,
    Output,
    Position,
    QueryInput,
    RoundWindow,
    Selection,
)

START = Position(1, 1)
SECOND = 1_000_000  # microseconds


def column(name: str) -> Expression:
    """A column, written alias.column.

    >>> column("TCP.src_host").sql
    '`TCP`.`src_host`'
    """
    alias, field = name.split(".")
    return Expression(f"`{alias}`.`{field}`", frozenset([alias]), frozenset([(alias, field)]), START)


def equality(name: str, value: int) -> Selection:
    """The selection column = value."""
    return _selection(name, f"= {value}", "equality")


def above(name: str, value: int) -> Selection:
    """The selection column > value."""
    return _selection(name, f"> {value}", "range")


def _selection(name: str, comparison: str, kind: Literal["equality", "range"]) -> Selection:
    tested = column(name)
    alias, field = name.split(".")
    expression = Expression(f"{tested.sql} {comparison}", tested.inputs, tested.columns, START)
    return Selection(alias, expression, f"`{field}` {comparison}", kind)


def query(
    columns: Sequence[str],
    outputs: Sequence[str],
    selections: Sequence[Selection] = (),
    equi_joins: Sequence[tuple[str, str]] = (),
    group_by: Sequence[str] = (),
    residuals: Sequence[Expression] = (),
    tables: Sequence[str] = (),
) -> ContinuousQuery:
    """A query over the inputs that the columns name, with a window of one second; an alias in `tables` is a table."""
    names = list(dict.fromkeys(each.split(".")[0] for each in columns))
    inputs = tuple(
        QueryInput(
            alias,
            alias,
            alias not in tables,
            tuple(each.split(".")[1] for each in columns if each.startswith(f"{alias}.")),
        )
        for alias in names
    )
    joins = tuple(EquiJoin(column(left), column(right)) for left, right in equi_joins)
    return ContinuousQuery(
        text="",
        digest="",
        inputs=inputs,
        outputs=tuple(Output(each.replace(".", "_"), column(each), is_aggregate=False) for each in outputs),
        selections=tuple(selections),
        equi_joins=joins,
        residuals=tuple(residuals),
        group_by=tuple(map(column, group_by)),
        having=None,
        is_distinct=False,
        window=RoundWindow(SECOND, SECOND),
    )


def q1() -> ContinuousQuery:
    """Table 2, Q1: SELECT src_host, dest_host FROM TCP WHERE dest_host = 2 WINDOW [1].

    >>> from thalweg.charts import candidate_plans
    >>> for plan in candidate_plans(q1()):
    ...     print(plan)
    Project TCP: src_host, dest_host
      Select `TCP`.`dest_host` = 2
        Scan stream TCP
    Select `TCP`.`dest_host` = 2
      Project TCP: src_host, dest_host
        Scan stream TCP
    """
    both = ("TCP.src_host", "TCP.dest_host")
    return query(both, both, [equality("TCP.dest_host", 2)])


def q2() -> ContinuousQuery:
    """Table 2, Q2: TCP, UDP and SF, joined on TCP.src_host = UDP.dest_host and UDP.dest_host = SF.dest_host.

    >>> from thalweg.charts import candidate_plans
    >>> print(candidate_plans(q2())[1])
    Join on `TCP`.`src_host` = `UDP`.`dest_host` AND `SF`.`dest_host` = `UDP`.`dest_host`
      Join on `TCP`.`src_host` = `SF`.`dest_host`
        Scan stream TCP
        Scan stream SF
      Scan stream UDP
    """
    columns = ("TCP.src_host", "UDP.dest_host", "SF.dest_host")
    pairs = [("TCP.src_host", "UDP.dest_host"), ("UDP.dest_host", "SF.dest_host")]
    return query(columns, columns, equi_joins=pairs)


def late_departures(minutes: int) -> ContinuousQuery:
    """Q1 for flights: SELECT flight, minutes_late FROM departures WHERE minutes_late > `minutes` WINDOW [1].

    >>> late_departures(0).selections[0].expression.sql
    '`departures`.`minutes_late` > 0'
    """
    both = ("departures.flight", "departures.minutes_late")
    return query(both, both, [above("departures.minutes_late", minutes)])


def flights_and_weather() -> ContinuousQuery:
    """Q2 for flights: departures, landings and weather, joined by airport.

    >>> from thalweg.charts import candidate_plans
    >>> print(candidate_plans(flights_and_weather())[0])
    Join on `weather`.`origin` = `landings`.`origin`
      Join on `departures`.`origin` = `weather`.`origin`
        Scan stream departures
        Scan stream weather
      Scan stream landings
    """
    columns = ("departures.origin", "weather.origin", "landings.origin")
    pairs = [("departures.origin", "weather.origin"), ("weather.origin", "landings.origin")]
    return query(columns, columns, equi_joins=pairs)
