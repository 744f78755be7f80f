"""How all tasks of a micro-batch come to use the same layouts: a file, and a ledger that checks that they did.

Each task that sends rows reads from a file which layouts are active, and reports to the ledger which entry of the file
it used and which values are frequent. The ledger, a key of the stateful operator, decides in each micro-batch which
layouts the next micro-batch uses, and writes the file: micro-batches come one after the other, so all tasks of the next
micro-batch see it. An entry says from which micro-batch on it holds; a micro-batch that is repeated uses the same
entry. The ledger's decisions are part of the checkpoint, the file is not: where it is lost, tasks send their rows to
all cells, which know from their own state by which layouts the last rows were sent, and pick their own rows. The ledger
writes the file again; as long as it cannot be written, layouts do not change (decision 0181). Tasks that used an entry
other than the ledger's state says fail the micro-batch: results are never silently wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import SkewReport, SkewStatistics
from thalweg.mjoin.window import FOREVER
from thalweg.sealed import SavedStateError, refusing_odd_values, seal, unseal_json
from thalweg.spark.folder import StateFolder

KIND, VERSION = "layouts of a join", 1


@dataclass(frozen=True)
class LayoutEntry:
    """Which layouts are active, from some micro-batch on.

    >>> entry = LayoutEntry(3, "run", ActiveLayouts(1))
    >>> LayoutEntry.from_json(entry.to_json()) == entry
    True
    """

    batch: int
    run: str  # that has decided it
    layouts: ActiveLayouts

    @classmethod
    def first(cls) -> LayoutEntry:
        """The entry that the first micro-batch uses."""
        return cls(0, "", PLAIN)

    def to_json(self) -> dict[str, Any]:
        """The entry as plain values for JSON."""
        return {"batch": self.batch, "run": self.run, "layouts": self.layouts.to_json()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> LayoutEntry:
        """The entry that `to_json` was called on."""
        return cls(saved["batch"], saved["run"], ActiveLayouts.from_json(saved["layouts"]))


def entry_for(entries: Sequence[LayoutEntry], batch: int) -> LayoutEntry | None:
    """The entry that holds for a micro-batch; None where it is lost.

    >>> first, later = LayoutEntry.first(), LayoutEntry(3, "run", ActiveLayouts(1))
    >>> entry_for([first, later], 2) == first, entry_for([first, later], 3) == later, entry_for([later], 2)
    (True, True, None)
    """
    return max((entry for entry in entries if entry.batch <= batch), key=lambda entry: entry.batch, default=None)


@dataclass(frozen=True)
class Splitting:
    """Where the tasks of a join find the layouts."""

    folder: str
    name: str  # of the join, the same after a restart
    run: str  # the key of this run of it
    shares: Shares
    has_tables: bool = False

    def read_entry(self, query: str, batch: int) -> LayoutEntry | None:
        """The entry that holds for a micro-batch of a query; None where the file is lost."""
        name = self._file(query)
        try:
            data = StateFolder(self.folder).read([name]).get(name)
            with refusing_odd_values(KIND):
                saved = [] if data is None else unseal_json(KIND, VERSION, data)
                entries = [LayoutEntry.from_json(entry) for entry in saved]
        except (OSError, SavedStateError):  # a damaged file is as good as a lost file
            entries = []
        return entry_for(entries or ([] if batch else [LayoutEntry.first()]), batch)

    def write_entries(self, query: str, entries: Sequence[LayoutEntry]) -> None:
        """Tell the tasks of later micro-batches."""
        text = json.dumps([entry.to_json() for entry in entries])
        StateFolder(self.folder).write(self._file(query), seal(KIND, VERSION, text.encode()))

    def check(self, query: str, used: set[LayoutEntry | None], record: SplittingRecord, batch: int) -> ActiveLayouts:
        """The layouts that all tasks of a micro-batch used; fails if the state expects other layouts.

        Tasks without an entry used the layouts of the micro-batch before, which cells know.
        """
        expected, known = entry_for(record.entries, batch), record.statistics.layouts
        if expected and used == {expected}:
            return expected.layouts
        if used == {None} or (expected and expected.layouts == known and used == {expected, None}):
            return known
        raise SavedStateError(
            f"tasks of micro-batch {batch} do not agree with the checkpoint about which keys are split. They read "
            f"{self._file(query)} in {self.folder}: state= must name a folder that the driver and all workers share, "
            f"and two joins in one query must differ in names, conditions or columns. Delete that file and start the "
            f"query again; nothing is lost"
        )

    def _file(self, query: str) -> str:
        return f"{query}-{self.name}.layouts"


@dataclass(frozen=True)
class SplittingRecord:
    """The ledger's record of split keys, which is kept in the state."""

    entries: tuple[LayoutEntry, ...]  # that hold for the last micro-batch, and for the next
    statistics: SkewStatistics
    may_split: bool = True  # whether tables are in all cells, if there are any

    @classmethod
    def new(cls, splitting: Splitting, batch: int) -> SplittingRecord:
        """The record of a query that begins, or that went on without splitting, of whose rows nothing is known."""
        if batch == 0:
            return cls((LayoutEntry.first(),), SkewStatistics())
        return cls((LayoutEntry.first(),), SkewStatistics(deadline=FOREVER), may_split=not splitting.has_tables)

    def after(
        self,
        splitting: Splitting,
        query: str,
        batch: int,
        used: set[LayoutEntry | None],
        reports: Sequence[SkewReport],
        watermark: int,
    ) -> SplittingRecord:
        """The record after a micro-batch; the file for the next is written if the layouts change or it was lost."""
        layouts = splitting.check(query, used, self, batch)
        statistics = self.statistics.after(layouts, reports, splitting.shares)
        following = statistics.next_layouts(watermark, splitting.shares) if self.may_split else layouts
        last = self.entries[-1]
        unchanged = SplittingRecord(self.entries, statistics, self.may_split)
        if (last.layouts, last.run) == (following, splitting.run) and None not in used:
            return unchanged
        now = entry_for(self.entries, batch)
        entries = (*((now,) if now else ()), LayoutEntry(batch + 1, splitting.run, following))
        try:
            splitting.write_entries(query, entries)
        except OSError:  # a full disk, or a folder that is lost
            return unchanged
        return SplittingRecord(entries, statistics, self.may_split)

    def with_longer_windows(self, growth: int) -> SplittingRecord:
        """The record where rows stay for so many microseconds longer than was said when they were sent."""
        if growth <= 0:
            return self
        if self.is_split:
            raise SavedStateError(
                "frequent keys are split in this checkpoint, and rows that were sent before would be needed again in "
                "longer windows: write windows= as before, or start with a new checkpoint"
            )
        deadline = min(self.statistics.deadline + growth, FOREVER)
        return replace(self, statistics=replace(self.statistics, deadline=deadline))

    @property
    def is_split(self) -> bool:
        """Whether rows have been sent, or will be, by another layout than the first."""
        return self.statistics.layouts != PLAIN or self.entries[-1].layouts != PLAIN

    def describe(self, shares: Shares) -> dict[str, Any]:
        """The split values and since when they are, for `tw.explain`."""
        entry, statistics = self.entries[-1], self.statistics
        return {
            "generation": entry.layouts.generation,
            "from_batch": entry.batch,
            "old_rows": entry.layouts.before is not None,  # whether rows of the previous layout are in windows
            "heavy": [
                {
                    "class": value.number,
                    "hash": value.hashed,
                    "share": statistics.load(value.number, value.hashed, shares) / shares.sizes[value.number],
                    "spread": value.spread,
                    "across": value.across,
                }
                for value in entry.layouts.heavy
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """The record as plain values for JSON."""
        entries = [entry.to_json() for entry in self.entries]
        return {"entries": entries, "statistics": self.statistics.to_json(), "may_split": self.may_split}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SplittingRecord:
        """The record that `to_json` was called on."""
        entries = tuple(LayoutEntry.from_json(entry) for entry in saved["entries"])
        return cls(entries, SkewStatistics.from_json(saved["statistics"]), saved["may_split"])
