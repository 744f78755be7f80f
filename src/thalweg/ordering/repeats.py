"""Decides whether a filter is asked for each row, or once for each distinct value, by measured times and shares.

To find the distinct values of a batch takes time, and pays where values repeat and asking takes longer than finding. To
look up values of earlier batches takes time again, and pays where they return. Both are tried in a few batches, and the
cheapest way is kept until it is no longer the cheapest. Trials that lead to nothing take a small share of the time.
Must not know how values are found or filters are asked.
"""

from __future__ import annotations

from enum import Enum

LEAST_ROWS = 256  # of a batch in which values are looked for: a call of Arrow takes as long as some hundred values
TRIAL_BATCHES = 4  # of a trial: values can return from the second batch on
TRIAL_SHARE = 0.002  # of the time of asking, which trials may take where they lead to nothing
PAYS = 0.9  # of the cost of asking for each row, which another way may cost at most
MEMORY = 0.7  # weight of the earlier batches when another batch comes


class Way(Enum):
    """How a filter is asked for the rows of a batch."""

    EACH_ROW = "each row"
    EACH_VALUE = "each distinct value of the batch"
    EACH_NEW_VALUE = "each distinct value that is not remembered"


class RecentMean:
    """A mean of which the newest numbers count most.

    >>> mean = RecentMean()
    >>> mean.note(6.0, 3)
    >>> mean.note(8.0, 1)
    >>> round(mean.value, 2)
    3.94
    """

    def __init__(self) -> None:
        self._total = self._count = 0.0

    @property
    def value(self) -> float:
        """The mean; 0 as long as nothing is known."""
        return self._total / self._count if self._count else 0.0

    def note(self, total: float, count: float) -> None:
        """Add so many numbers, by their sum."""
        self._total = MEMORY * self._total + total
        self._count = MEMORY * self._count + count


class UsualTime:
    """The time that a piece of work usually takes: a process that lost the processor for once does not change it.

    >>> time = UsualTime()
    >>> for seconds in (9.0, 1.0, 1.0, 50.0, 1.0):
    ...     time.note(seconds, pieces=1)
    >>> time.value
    1.0
    """

    def __init__(self) -> None:
        self.value = 0.0  # seconds of a piece; 0 as long as nothing is known

    def note(self, seconds: float, pieces: int) -> None:
        """Learn from so many pieces together."""
        each = seconds / max(pieces, 1)
        is_more = self.value and each > self.value
        self.value = self.value + (1.0 - MEMORY) * min(each - self.value, self.value) if is_more else each


class Repeats:
    """Learns what asking a filter costs, and chooses the cheapest way to ask it.

    Examples
    --------
    To ask takes 5 µs, to find distinct values 0.1 µs a row, and a tenth of the rows have a value of their own.

    >>> repeats = Repeats()
    >>> repeats.note_asked(1000, seconds=5e-3)
    >>> for batch in range(TRIAL_BATCHES + 1):
    ...     assert repeats.choose(rows=1000) is Way.EACH_NEW_VALUE  # a trial, in which no value returns
    ...     repeats.note_values(rows=1000, values=100, finding=1e-4, returned=0, looking_up=1e-4)
    >>> repeats.choose(rows=1000)
    <Way.EACH_VALUE: 'each distinct value of the batch'>
    """

    def __init__(self) -> None:
        self._asking = RecentMean()  # seconds of a row or value
        self._finding = UsualTime()  # of a row
        self._looking_up = UsualTime()  # of a value
        self._distinct = RecentMean()  # values of a row
        self._returned = RecentMean()  # share of the values
        self._way = Way.EACH_ROW
        self._is_first = True  # whether no value was looked for yet: the first call of Arrow takes long
        self._trial_left = 0  # batches of the trial
        self._trial_seconds = 0.0  # that the last trial took besides asking
        self._asked_seconds = 0.0  # that asking has taken since then

    def choose(self, rows: int) -> Way:
        """The way to ask for so many rows."""
        if rows < LEAST_ROWS or not self._asking.value:
            return Way.EACH_ROW
        is_due = self._trial_seconds <= TRIAL_SHARE * self._asked_seconds
        if is_due and not self._trial_left and self._way is not Way.EACH_NEW_VALUE:
            self._trial_left, self._trial_seconds, self._returned = TRIAL_BATCHES, 0.0, RecentMean()
        return Way.EACH_NEW_VALUE if self._trial_left else self._way

    def note_asked(self, asked: int, seconds: float) -> None:
        """The filter was asked for so many rows or values, in this time."""
        self._asking.note(seconds, asked)
        self._asked_seconds += seconds

    def note_values(
        self, *, rows: int, values: int, finding: float, returned: int | None = None, looking_up: float = 0.0
    ) -> None:
        """Distinct values were found in the rows of a batch, and so many of them were remembered, if looked up.

        `finding` and `looking_up` are the seconds that it took; to look values up includes to remember new values.
        """
        if self._is_first:
            self._is_first = False
            return
        self._finding.note(finding, rows)
        self._distinct.note(values, rows)
        if returned is not None:
            self._returned.note(returned, values)
            self._looking_up.note(looking_up, values)
        was_trial = self._trial_left > 0
        if was_trial:
            self._trial_left -= 1
            self._trial_seconds += self._finding.value * rows + self._looking_up.value * values
        asking = self._asking.value
        if self._finding.value + self._distinct.value * min(self._looking_up.value, asking) > PAYS * asking:
            self._trial_left = 0  # it cannot pay, however often values return
        if not self._trial_left:
            before, self._way = self._way, self._cheapest()
            if was_trial or before is not self._way:
                self._asked_seconds = 0.0

    def _cheapest(self) -> Way:
        asking, finding, distinct = self._asking.value, self._finding.value, self._distinct.value
        new = 1.0 - self._returned.value
        costs = {
            Way.EACH_ROW: PAYS * asking,
            Way.EACH_VALUE: finding + distinct * asking,
            Way.EACH_NEW_VALUE: finding + distinct * (self._looking_up.value + new * asking),
        }
        return min(costs, key=lambda way: costs[way])
