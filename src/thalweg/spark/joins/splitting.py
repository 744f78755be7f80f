"""How all tasks of a micro-batch come to use the same layouts: a file, and a ledger that checks that they did.

Each task that sends rows reads from a file which layouts are alive, and tells the ledger what it used and which values
are frequent. The ledger, one key of the stateful operator, decides in each micro-batch which layouts the next one uses,
and writes the file: micro-batches come one after the other, so all tasks of the next see it. An entry says from which
micro-batch on it holds; a micro-batch that is done again uses the same. What the ledger decided is part of the
checkpoint, the file is not: where it is lost, tasks send their rows to all cells, which know from their own state by
which layouts the last rows were sent and pick theirs. Tasks that used anything else than the ledger's state says fail
the micro-batch: results are never silently wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from thalweg.mjoin import BEGINNING, StateError
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import Ledger, SkewReport
from thalweg.mjoin.window import FOREVER
from thalweg.spark.folder import StateFolder


class Entry(NamedTuple):
    """Which layouts are alive, from some micro-batch on."""

    batch: int
    by: str  # the run that has decided it
    layouts: ActiveLayouts

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps([self.batch, self.by, self.layouts.to_json()])

    @classmethod
    def from_text(cls, text: str) -> Entry:
        """What `text` gave."""
        batch, by, layouts = json.loads(text)
        return cls(batch, by, ActiveLayouts.from_json(layouts))


FIRST = Entry(0, "", PLAIN)  # what the first micro-batch uses


def valid(entries: Sequence[Entry], batch: int) -> Entry | None:
    """The entry that holds for a micro-batch; None where it is lost.

    >>> later = Entry(3, "run", ActiveLayouts(1))
    >>> valid([FIRST, later], 2) == FIRST, valid([FIRST, later], 3) == later, valid([later], 2)
    (True, True, None)
    """
    return max((one for one in entries if one.batch <= batch), key=lambda one: one.batch, default=None)


@dataclass(frozen=True)
class Splitting:
    """Where the tasks of a join find the layouts."""

    folder: str
    name: str  # of the join, the same after a restart
    run: str  # the key of this run of it
    shares: Shares
    whole_tables: bool = False  # whether there are tables

    def current(self, query: str, batch: int) -> Entry | None:
        """The entry that holds for a micro-batch of a query; None where the file is lost."""
        name = self._file(query)
        try:
            found = StateFolder(self.folder).read([name]).get(name, b"[]")
            entries = [Entry.from_text(one) for one in json.loads(found)]
        except (OSError, ValueError, KeyError, TypeError):  # damaged is as good as lost
            entries = []
        return valid(entries or ([] if batch else [FIRST]), batch)

    def write(self, query: str, entries: Sequence[Entry]) -> None:
        """Tell the tasks of later micro-batches."""
        StateFolder(self.folder).write(self._file(query), json.dumps([one.text for one in entries]).encode())

    def check(self, query: str, used: set[str | None], record: Record, batch: int) -> ActiveLayouts:
        """The layouts that all tasks of a micro-batch used; fails if these are not those of the state."""
        expected = valid(record.entries, batch)
        if used == {expected.text if expected else None}:
            return expected.layouts if expected else record.ledger.layouts
        if used == {None} and record.entries[-1].by != self.run:  # the first micro-batch of this run
            return record.ledger.layouts
        raise StateError(
            f"tasks of micro-batch {batch} do not agree with the checkpoint about which keys are split. They read "
            f"{self._file(query)} in {self.folder}: state= must name a folder that the driver and all workers share, "
            f"and two joins in one query must differ in names, conditions or columns. Delete that file and start the "
            f"query again; nothing is lost"
        )

    def _file(self, query: str) -> str:
        return f"{query}-{self.name}.layouts"


@dataclass(frozen=True)
class Record:
    """What the ledger keeps in the state."""

    entries: tuple[Entry, ...]  # that hold for the last micro-batch, and for the next
    ledger: Ledger
    may_split: bool = True  # whether tables are in all cells, if there are any

    @classmethod
    def new(cls, splitting: Splitting, batch: int) -> Record:
        """That of a query that begins; or of one that went on without splitting, of whose rows nothing is known."""
        if batch == 0:
            return cls((FIRST,), Ledger())
        return cls((FIRST,), Ledger(deadline=FOREVER), may_split=not splitting.whole_tables)

    def after(
        self, splitting: Splitting, query: str, batch: int, reports: Sequence[Mapping[str, Any]], watermark: int
    ) -> Record:
        """What is known after a micro-batch; the file for the next is written if it is another than before."""
        shares = splitting.shares
        used = splitting.check(query, {one["entry"] for one in reports}, self, batch)
        ledger = self.ledger.after(used, map(report_from, reports), shares)
        layouts = ledger.next(watermark, shares) if self.may_split else used
        last = self.entries[-1]
        if (last.layouts, last.by) == (layouts, splitting.run):
            return Record(self.entries, ledger, self.may_split)
        now = valid(self.entries, batch)
        entries = (*((now,) if now else ()), Entry(batch + 1, splitting.run, layouts))
        splitting.write(query, entries)
        return Record(entries, ledger, self.may_split)

    @property
    def is_split(self) -> bool:
        """Whether rows have been sent, or will be, by another layout than the first."""
        return self.ledger.layouts != PLAIN or self.entries[-1].layouts != PLAIN

    def describe(self, shares: Shares) -> dict[str, Any]:
        """What people want to know of it."""
        entry, ledger = self.entries[-1], self.ledger
        return {
            "generation": entry.layouts.generation,
            "from_batch": entry.batch,
            "old_rows": entry.layouts.before is not None,  # whether rows of the layout before are in windows
            "heavy": [
                {
                    "class": one.number,
                    "hash": one.hashed,
                    "share": ledger.load(one.number, one.hashed, shares) / shares.sizes[one.number],
                    "spread": one.spread,
                }
                for one in entry.layouts.heavy
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        entries = [one.text for one in self.entries]
        return {"entries": entries, "ledger": self.ledger.to_json(), "may_split": self.may_split}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Record:
        """What `to_json` made."""
        entries = tuple(Entry.from_text(one) for one in found["entries"])
        return cls(entries, Ledger.from_json(found["ledger"]), found["may_split"])


def report_from(told: Mapping[str, Any]) -> SkewReport:
    """A task's report from what it told the ledger."""
    frequent = {
        int(number): {int(one): rows for one, rows in each.items()} for number, each in told["frequent"].items()
    }
    deadline = BEGINNING if told["deadline"] is None else told["deadline"]
    return SkewReport(told["input"], told["rows"], deadline, frequent)
