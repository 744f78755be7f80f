"""How many rows came in each pane of event time: rates, selectivities and the rounds that have rows follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pane:
    """How many rows of a stream have a time in (end - width, end], and how many of these each conjunction keeps."""

    width: int
    rows: int
    kept: Mapping[str, int] = field(default_factory=dict)  # by the name of the conjunction

    def __add__(self, other: Pane) -> Pane:
        kept = {name: count + self.kept.get(name, 0) for name, count in other.kept.items()}
        return Pane(other.width, self.rows + other.rows, {**self.kept, **kept})


Panes = Mapping[str, Mapping[int, Pane]]  # by stream and end


def together(before: Panes, new: Panes) -> dict[str, dict[int, Pane]]:
    """The panes that wait, with those of a micro-batch."""
    panes = {stream: dict(ends) for stream, ends in before.items()}
    for stream, ends in new.items():
        own = panes.setdefault(stream, {})
        for end, pane in ends.items():
            own[end] = own[end] + pane if end in own else pane
    return panes
