"""When to look for classifiers: as soon as there are enough profile tuples, then less and less often."""

from __future__ import annotations

FIRST_LOOK = 400  # profile tuples before classifiers are looked for
LONGEST_REST = 16  # windows from one look to the next, at most


class LookSchedule:
    """Counts profile tuples, and says when to look for classifiers.

    Parameters
    ----------
    window
        How many profile tuples the sample holds from which classifiers are chosen.

    Examples
    --------
    >>> schedule = LookSchedule(window=4000)
    >>> schedule.count(FIRST_LOOK)
    >>> schedule.is_due
    True
    >>> schedule.looked(sample_size=FIRST_LOOK)
    >>> schedule.due
    600
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.seen = 0  # profile tuples
        self.due = FIRST_LOOK  # profile tuples at the next look
        self.rest = window  # profile tuples from a look that finds nothing to the next
        self.changed = 0  # profile tuples seen when the stream last changed; 0 if it never did

    @property
    def has_looked(self) -> bool:
        """Whether classifiers were looked for, in this process or before."""
        return self.due > FIRST_LOOK

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for classifiers."""
        return self.seen >= self.due

    def count(self, tuples: int) -> None:
        """Count profile tuples."""
        self.seen += tuples

    def looked(self, sample_size: int) -> None:
        """Plan the next look, after a look at a sample of this size."""
        if sample_size < self.window:  # while it grows, each look sees half as much again
            self.due = self.seen + sample_size // 2
        else:
            self.wait()
        if self.changed < self.seen < self.changed + FIRST_LOOK:
            self.due = self.changed + FIRST_LOOK

    def look_again(self, *, has_classes: bool = False) -> None:
        """Look soon, also at the tuples from now on alone: the stream has changed.

        Where there are classes, the first change counts however early it comes: they may have no meaning any more.
        """
        is_first = has_classes and not self.changed
        if is_first or self.seen - self.changed > 2 * FIRST_LOOK:  # else it is still the same change
            self.changed = self.seen
        self.due, self.rest = min(self.due, max(self.changed + FIRST_LOOK, self.seen + 1)), self.window

    def wait(self) -> None:
        """Look after a rest, which is twice as long each time."""
        self.due, self.rest = self.seen + self.rest, min(2 * self.rest, LONGEST_REST * self.window)

    def start_over(self, newest: int) -> None:
        """Look when there are enough tuples from after a change, of which so many were seen already."""
        self.changed = self.seen - newest
        self.due, self.rest = self.seen + max(FIRST_LOOK - newest, 1), self.window
