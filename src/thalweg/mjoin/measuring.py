"""Measures the selectivities and rates that probe orders depend on, on a sample of new rows.

Each sampled row of an input is looked up in the windows of all others, before it is joined. That gives joint drop masks
(a bit for every other input, set if the path to it has no match), hence how many rows survive; and for every two inputs
that share a key, which share of their pairs of rows match. A share that has surely changed is measured anew, other
shares as a decayed mean. Of two inputs, the matches of new rows of the left are kept apart from the matches of new rows
of the right, for windows of different length make them differ. This module chooses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import numpy as np

from thalweg.joinorder import DropProbing, JoinGraph
from thalweg.mjoin.index import Index, Matches, ProbeKeys, joined
from thalweg.mjoin.keys import combined
from thalweg.mjoin.query import JoinQuery, Key, Pair
from thalweg.mjoin.window import Segment, Window
from thalweg.ordering.types import Floats, Integers

SAMPLED, SAMPLED_EARLY = 256, 16  # a row in so many is sampled, and while little is known
EARLY = 256  # sampled rows until enough is known
SELDOM = 4  # steps after which there is a sample in any case
LEAST_SAMPLE, MOST_SAMPLE = 64, 128  # rows at once: also a small sample takes a while
MOST_MATCHES = 1 << 14  # that a sample may have before the next is smaller
KEPT = 0.9  # of earlier measures, from a step to the next
CHANGED_BY = 3.0  # standard errors by which a share of pairs has surely changed
RECENT = 256  # drop masks that are remembered
FEW = 0.5  # a count of nothing is half a count
PAIRS, MATCHES, HITS = range(3)  # evidence: pairs of rows compared, pairs that match, rows with a match


class Measures:
    """The measured rates, selectivities and drop masks of the inputs of a join."""

    def __init__(self, query: JoinQuery, windows: Mapping[str, Window]) -> None:
        self.query, self.windows = query, windows
        self.probings = {name: DropProbing(query.graph(), name) for name in query.names}
        self._near = {name: [other for other in query.names if self._key(name, other)] for name in query.names}
        self.masks = {name: np.empty(0, np.int64) for name in query.names}  # the latest
        self.arrived = dict.fromkeys(query.names, 0.0)
        self.has_changed = False  # whether some selectivity has surely changed since orders were last planned
        self._steps = 0.0  # in which they arrived
        # The input whose new rows are sampled, and the input in whose window they are looked up.
        ways = [way for pair in query.pairs for way in (pair, pair[::-1])]
        self._known = {way: np.zeros(3) for way in ways}
        self._fresh = {way: np.zeros(3) for way in ways}  # of this step
        self._most = dict.fromkeys(query.names, MOST_SAMPLE)  # rows to sample in a step; fewer where they match much
        self._sampled = dict.fromkeys(query.names, 0)  # rows since a selectivity has last changed
        self._due = dict.fromkeys(query.names, float(LEAST_SAMPLE))  # rows to sample: of the first rows, at once
        self._random = np.random.default_rng(0)

    @property
    def rates(self) -> dict[str, float]:
        """Rows of each input a step."""
        return {name: arrived / max(self._steps, 1.0) for name, arrived in self.arrived.items()}

    @property
    def hits(self) -> dict[Pair, float]:
        """For every two inputs that share a key, how many sampled rows had a match."""
        return {pair: float(counts[HITS]) for pair, counts in self._pairs.items()}

    @property
    def _pairs(self) -> dict[Pair, Floats]:
        """The evidence both ways."""
        evidence = {way: self._known[way] + self._fresh[way] for way in self._known}
        return {pair: evidence[pair] + evidence[pair[::-1]] for pair in self.query.pairs}

    @property
    def selectivities(self) -> dict[Pair, float]:
        """Which share of the pairs of rows match, for every two inputs where that is known."""
        return {pair: _share(counts) for pair, counts in self._pairs.items() if counts[PAIRS]}

    @property
    def graph(self) -> JoinGraph | None:
        """The join graph as measured, once everything is."""
        selectivities = self.selectivities
        if len(selectivities) < len(self.query.pairs):
            return None
        sizes = {name: max(float(window.alive), 1.0) for name, window in self.windows.items()}
        return self.query.graph({name: max(rate, FEW) for name, rate in self.rates.items()}, sizes, selectivities)

    def survivors(self, name: str) -> float | None:
        """Which share of an input's rows no probe drops, if that is known."""
        masks = self.masks[name]
        return float(np.count_nonzero(masks == 0)) / masks.size if masks.size >= LEAST_SAMPLE else None

    def probes_a_row(self, name: str, order: tuple[str, ...]) -> float:
        """How many inputs a row probes in an order until an input drops it."""
        filters, masks = self.probings[name].filters, self.masks[name]
        alive, probes = np.ones(masks.size, np.bool_), 0
        for other in order:
            probes += int(np.count_nonzero(alive))
            alive &= (masks >> filters.index(other)) & 1 == 0
        return probes / max(masks.size, 1)

    def sample(self, name: str, segment: Segment, floors: Mapping[str, int]) -> Integers:
        """Look some new rows of an input up in all other windows; returns their drop masks."""
        share = 1 / (SAMPLED_EARLY if self._sampled[name] < EARLY else SAMPLED)
        self._due[name] += max(share * segment.rows, LEAST_SAMPLE / SELDOM)
        if self._due[name] < LEAST_SAMPLE:
            return np.empty(0, np.int64)
        size, self._due[name] = min(int(self._due[name]), self._most[name], segment.rows), 0.0
        self._sampled[name] += size
        rows = segment.first + np.sort(self._random.choice(segment.rows, size, replace=False))
        own = self.windows[name]
        start = Matches(np.arange(size), rows, own.ring("times", rows), own.ring("deadlines", rows))
        matches = {other: self._matches(name, other, start, floors) for other in self._near[name]}
        for other, found in matches.items():
            way = name, other
            self._fresh[way] += size * self.windows[other].alive, found.rows.size, np.unique(found.origin).size
            if has_changed(self._known[way], self._fresh[way]):
                self.has_changed = True
                self._sampled |= dict.fromkeys(way, 0)
                self._known[way] = self._known[way[::-1]] = np.zeros(3)
        if sum(found.rows.size for found in matches.values()) > MOST_MATCHES:
            self._most[name] = max(self._most[name] // 2, 1)
        elif self._most[name] < MOST_SAMPLE:
            self._most[name] += 1
        masks = self._drop_masks(name, matches, size, floors)
        self.masks[name] = np.concatenate([self.masks[name], masks])[-RECENT:]
        return masks

    def finish(self, rows: Mapping[str, int]) -> None:
        """End a step in which so many rows came."""
        self._steps = KEPT * self._steps + 1.0
        for name in self.query.names:
            self.arrived[name] = KEPT * self.arrived[name] + rows.get(name, 0)
        for way, fresh in self._fresh.items():
            self._known[way] = KEPT * self._known[way] + fresh
            self._fresh[way] = np.zeros(3)

    def knowledge(self) -> dict[str, Any]:
        """The measures, as plain values for JSON."""
        pairs = [[*way, *counts.tolist()] for way, counts in self._known.items()]
        return {"arrived": dict(self.arrived), "steps": self._steps, "pairs": pairs}

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with measures of an earlier run."""
        self.arrived, self._steps = dict(knowledge["arrived"]), float(knowledge["steps"])
        self._known |= {(left, right): np.array(counts) for left, right, *counts in knowledge["pairs"]}

    def _drop_masks(self, name: str, matches: Mapping[str, Matches], size: int, floors: Mapping[str, int]) -> Integers:
        """For each row of a sample, which paths have no match; where they begin, the matches are known."""
        probing = self.probings[name]
        inner = set(probing.parents.values())
        reached, masks = dict(matches), np.zeros(size, np.int64)
        for child, parent in probing.parents.items():
            if parent == name:
                alive = reached[child].origin
            elif child in inner:
                found = self._matches(parent, child, reached[parent], floors)
                reached[child] = found._replace(origin=reached[parent].origin[found.origin])
                alive = reached[child].origin
            else:
                window, (index, wanted) = self.windows[child], self._wanted(parent, child, reached[parent])
                is_found = index.first(wanted, window.start, floors[child]) >= window.start
                alive = reached[parent].origin[is_found]
            dropped = np.ones(size, np.bool_)
            dropped[alive] = False
            masks |= dropped.astype(np.int64) << probing.filters.index(child)
        return masks

    def _matches(self, parent: str, child: str, start: Matches, floors: Mapping[str, int]) -> Matches:
        """The matches that rows of one input have in another's window."""
        window, (index, wanted) = self.windows[child], self._wanted(parent, child, start)
        return joined(index.matches(wanted, index.newest(wanted.keys), window.start, floors[child]))

    def _wanted(self, parent: str, child: str, start: Matches) -> tuple[Index, ProbeKeys]:
        key = self._key(parent, child)
        codes = combined([self.windows[parent].ring(number, start.rows) for number in key])
        return self.windows[child].index(key), ProbeKeys(codes, start.latest, start.before)

    def _key(self, left: str, right: str) -> Key:
        """The classes of equal columns that two inputs share."""
        return self.query.pairs.get((left, right)) or self.query.pairs.get((right, left), ())


def has_changed(before: Floats, now: Floats) -> bool:
    """Whether the share of matching pairs is surely another than before.

    >>> before, alike, other = np.array([1e6, 100, 90]), np.array([1e5, 12, 10]), np.array([1e5, 80, 75])
    >>> has_changed(before, alike), has_changed(before, other)
    (False, True)
    """
    if min(before[PAIRS], now[PAIRS]) <= 0.0:
        return False
    evidence = sum(1.0 / max(float(counts[HITS]), FEW) for counts in (before, now))
    return abs(log(_share(now) / _share(before))) > CHANGED_BY * sqrt(evidence)


def _share(counts: Floats) -> float:
    return min(max(float(counts[MATCHES]), FEW) / float(counts[PAIRS]), 1.0)
