"""Profile tuples with the values of their attributes, from which a classifier is chosen.

A window by count, like a policy's profile; masks beside codes and numbers of the values (`thalweg.routing.partition`).
"""

from __future__ import annotations

import numpy as np

from thalweg.ordering.types import Floats, Integers


class ClassifierSample:
    """The newest profile tuples, with the values of some attributes.

    Parameters
    ----------
    attributes
        How many attributes there are.
    window
        How many profile tuples are kept.

    Examples
    --------
    >>> sample = ClassifierSample(attributes=1, window=2)
    >>> for mask in (1, 2, 3):
    ...     sample.insert(np.array([mask]), np.array([[10 * mask]]), np.array([[mask / 2]]))
    >>> sample.masks.tolist(), sample.codes.tolist(), sample.numbers.tolist()
    ([2, 3], [[20], [30]], [[1.0], [1.5]])
    """

    def __init__(self, attributes: int, window: int) -> None:
        self.window = window
        # Twice the room: old tuples are moved out once in a window, and not with every insert.
        self._masks = np.zeros(2 * window, np.int64)
        self._codes = np.zeros((2 * window, attributes), np.int64)
        self._numbers = np.zeros((2 * window, attributes))
        self._start = self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def masks(self) -> Integers:
        """The drop masks, oldest first."""
        return self._masks[self._start : self._stop]

    @property
    def codes(self) -> Integers:
        """The codes of the values: a row for each tuple, a column for each attribute."""
        return self._codes[self._start : self._stop]

    @property
    def numbers(self) -> Floats:
        """The values on a line, NaN where they have no place there."""
        return self._numbers[self._start : self._stop]

    @property
    def nbytes(self) -> int:
        """The memory of the window."""
        return self._masks.nbytes + self._codes.nbytes + self._numbers.nbytes

    def insert(self, masks: Integers, codes: Integers, numbers: Floats) -> None:
        """Put profile tuples in; the oldest leave as they must."""
        masks, codes, numbers = masks[-self.window :], codes[-self.window :], numbers[-self.window :]
        if self._stop + masks.size > self._masks.size:
            self.keep(self.window - masks.size)
            kept = len(self)
            for array in (self._masks, self._codes, self._numbers):
                array[:kept] = array[self._start : self._stop].copy()
            self._start, self._stop = 0, kept
        stop = self._stop + masks.size
        self._masks[self._stop : stop] = masks
        self._codes[self._stop : stop] = codes
        self._numbers[self._stop : stop] = numbers
        self._stop = stop
        self.keep(self.window)

    def newest(self, size: int) -> ClassifierSample:
        """A sample of the newest tuples."""
        part = ClassifierSample(self._codes.shape[1], size)
        part.insert(self.masks[-size:], self.codes[-size:], self.numbers[-size:])
        return part

    def keep(self, newest: int) -> None:
        """Forget all but so many of the newest."""
        self._start = max(self._start, self._stop - newest)
