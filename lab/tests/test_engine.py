import numpy as np
import pytest

from thalweg.drift import Watched
from thalweg.ordering import POLICIES, AGreedy, AsWritten, Policy, optimal_order, order_cost
from thalweg.ordering.cost import drop_counts
from thalweg.ordering.policy import Batch, Floats, ProcessingCounts, want_rest
from thalweg_lab.engine import CODES, Engine
from thalweg_lab.workload import Workload

WORKLOAD = Workload((0.2, 0.3, 0.4, 0.5, 0.6, 0.7), gamma=2)
PROBE_SECONDS = 1e-7  # given, not measured: the orders that policies choose must not depend on the moment


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine([1] * 6, probe_seconds=PROBE_SECONDS)


def test_evaluations_are_those_of_the_cost_model(engine: Engine) -> None:
    """The windows really decide: what the engine evaluates is what the masks imply."""
    masks = WORKLOAD.masks(30_000, np.random.default_rng(0))
    order = (3, 1, 5, 0, 2, 4)
    run = engine.run(AsWritten(6, order=order), [masks[:10_000], masks[10_000:]])
    assert run.evaluations == round(order_cost(masks, order) * 30_000)
    assert sum(run.series) == run.evaluations
    assert len(run.series) == 15
    assert (run.profiled, run.extra_evaluations, run.changes) == (0, 0, 0)


def test_profiling_pays_what_the_policy_asks_for(engine: Engine) -> None:
    masks = WORKLOAD.masks(100_000, np.random.default_rng(0))
    dropped = masks[masks > 0].size
    for kind in (kind for kind in CODES if kind.default_p > 0):
        run = engine.run(kind(6, p=0.05, adaptive_p=False), [masks])
        assert run.profiled == pytest.approx(0.05 * dropped, rel=0.1)
        if kind.name in {"sweep", "local-swaps"}:
            assert run.extra_evaluations <= run.profiled
        else:
            assert run.extra_evaluations > 2 * run.profiled


@pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)
def test_every_policy_runs_and_none_changes_what_is_evaluated(engine: Engine, kind: type[Policy]) -> None:
    masks = WORKLOAD.masks(60_000, np.random.default_rng(0))
    policy = kind(6, p=0.02, after={0: [5]})
    run = engine.run(policy, [masks])
    assert run.tuples == 60_000
    assert sorted(run.order) == list(range(6))
    assert run.order.index(5) < run.order.index(0)


def test_batches_of_one_give_the_same_policy_behaviour_as_direct_updates() -> None:
    """With p = 1 and equal costs, the engine shows the policy exactly the dropped tuples, in order."""
    masks = Workload((0.4, 0.5, 0.6)).masks(2_000, np.random.default_rng(0))
    through = AGreedy(3, p=1.0, adaptive_p=False, window=50)
    Engine([1] * 3, batch=1, probe_seconds=PROBE_SECONDS).run(through, [masks])
    assert through.profile.seen == (masks > 0).sum()
    assert through.profile.masks.tolist() == masks[masks > 0][-50:].tolist()


def test_a_greedy_settles_near_the_optimum(engine: Engine) -> None:
    random = np.random.default_rng(0)
    policy = AGreedy(6)
    engine.run(policy, WORKLOAD.chunks(300_000, random))
    masks = WORKLOAD.masks(100_000, random)
    best = order_cost(masks, optimal_order(masks, np.ones(6)))
    assert order_cost(masks, policy.order) <= 1.05 * best


def test_costs_are_felt() -> None:
    """Two filters drop alike, one of them twenty times as costly: it goes last."""
    workload = Workload((0.5, 0.5), gamma=1)
    policy = AGreedy(2, order=(1, 0), p=0.05)
    Engine([1, 20], probe_seconds=PROBE_SECONDS).run(policy, workload.chunks(100_000, np.random.default_rng(0)))
    assert policy.order == (0, 1)


@pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)
def test_with_a_given_time_of_a_probe_only_the_seed_decides(kind: type[Policy]) -> None:
    runs = []
    for _ in range(2):
        engine = Engine([1, 2, 3, 1, 2, 3], probe_seconds=PROBE_SECONDS, seed=7)
        runs.append(engine.run(kind(6), WORKLOAD.chunks(60_000, np.random.default_rng(0))))
    assert runs[0].order == runs[1].order
    assert runs[0].series == runs[1].series
    assert runs[0].profiled == runs[1].profiled


def test_bad_probes_and_policies_are_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="counts of at least 1"):
        Engine([1, 0])
    with pytest.raises(ValueError, match="this engine has 6 filters, the policy 3"):
        engine.run(AsWritten(3), [])


def test_a_watched_policy_gets_over_a_change() -> None:
    random = np.random.default_rng(0)
    before, after = Workload((0.9, 0.3, 0.1)), Workload((0.1, 0.3, 0.9))
    policies = {
        "alone": AGreedy(3, window=60_000, p=0.1, adaptive_p=False),
        "watched": Watched(AGreedy(3, window=60_000, p=0.1, adaptive_p=False)),
    }
    engine = Engine([1, 1, 1], probe_seconds=PROBE_SECONDS)
    engine.race(policies, before.chunks(100_000, random))
    runs = engine.race(policies, after.chunks(100_000, random))
    assert {run.tuples for run in runs.values()} == {100_000}
    assert sum(runs["watched"].series) == runs["watched"].evaluations
    assert policies["watched"].profile.seen == pytest.approx(policies["alone"].profile.seen, rel=0.05)
    assert runs["watched"].order[0] == 2
    assert runs["watched"].evaluations < 0.9 * runs["alone"].evaluations


class ByDrops(Policy):
    """A policy that the engine does not know: sorts filters by the drops that it was shown."""

    name = "by-drops"
    default_p = 0.1
    total_rows = 1

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        return self._learn(drop_counts(batch.masks, self.filters))

    def _learn(self, drops: Floats) -> bool:
        self.state.totals[0] += drops
        self.state.order[:] = np.argsort(-self.state.totals[0], kind="stable")
        want_rest(self.state.order, self.state.wanted)
        return True


class ByDropsSeen(ByDrops):
    """The same, from ordinary processing."""

    name = "by-drops-seen"
    default_p = 0.0
    learns_from_processing = True

    def _observe(self, counts: ProcessingCounts) -> bool:
        return self._learn(counts.dropped)


@pytest.mark.parametrize("kind", [ByDrops, ByDropsSeen], ids=lambda kind: kind.name)
def test_any_policy_runs_without_an_entry_in_the_engine(kind: type[Policy]) -> None:
    random = np.random.default_rng(0)
    masks = (random.random((20_000, 3)) < [0.05, 0.4, 0.9]) @ np.array([1, 2, 4])
    run = Engine(probes=[1, 1, 1]).run(kind(3), [masks])
    assert run.order == (2, 1, 0)
