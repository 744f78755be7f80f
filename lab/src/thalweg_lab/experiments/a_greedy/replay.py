"""The cost of A-Greedy's bookkeeping for each profile tuple, part by part.

The parts take tens of nanoseconds, too short for a clock in their midst. So the same profile tuples are let through
the window alone, then the window and the matrix view, then all of A-Greedy; the time that a part adds is its cost. In
so tight a loop caches are warm: these are lower bounds of the parts' costs between other work.
"""

from collections.abc import Callable
from time import thread_time

import numpy as np

from thalweg.kernels import kernel
from thalweg.ordering import Policy, Profile
from thalweg.ordering.a_greedy import adapt
from thalweg.ordering.matrix_view import FULL, recount, slide
from thalweg.ordering.profile import Batch, ProfileWindow, insert
from thalweg.ordering.types import Integers

PARTS = ("window", "view", "violations")
ROUNDS = 20


@kernel
def slide_all(window: ProfileWindow, view: Integers, order: Integers, batch: Batch) -> None:
    """Keep the window and the matrix view up to date, and look no further."""
    for k in range(batch.masks.size):
        slide(window, view, order, FULL, 0, batch, k)


def bookkeeping(policy: Policy, masks: Integers, timed_every: int, random: np.random.Generator) -> dict[str, float]:
    """Seconds a profile tuple takes in each part, for a settled A-Greedy and further drop masks of its stream."""
    masks = masks[masks != 0]
    samples = policy.profile.times[~np.isnan(policy.profile.times).any(axis=1)]
    if not samples.size:
        raise ValueError("the policy's profile has no times to replay; let it settle first")
    order, view = policy.state.order.copy(), policy.state.counts.copy()
    alone, viewed = _copy(policy.profile), _copy(policy.profile)
    recount(view, order, FULL, 0, viewed.arrays)
    steps: tuple[Callable[[Batch], object], ...] = (
        lambda batch: insert(alone.arrays, batch),
        lambda batch: slide_all(viewed.arrays, view, order, batch),
        lambda batch: adapt(policy.profile.arrays, policy.state, batch),
    )
    seconds = np.empty((ROUNDS + 1, len(steps)))
    for turn, part in enumerate(np.array_split(masks, ROUNDS + 1)):
        batch = Batch(
            part,
            samples[random.integers(len(samples), size=part.size)],
            np.arange(part.size) % timed_every == 0,
            np.zeros(part.size),
        )
        for column, step in enumerate(steps):
            before = thread_time()
            step(batch)
            seconds[turn, column] = (thread_time() - before) / part.size
    steady = np.median(seconds[1:], axis=0)  # the first round loads the compiled code
    return dict(zip(PARTS, np.diff(steady, prepend=0.0).tolist(), strict=True))


def _copy(profile: Profile) -> Profile:
    return Profile.from_bytes(profile.to_bytes())
