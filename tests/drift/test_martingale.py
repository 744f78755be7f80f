import numpy as np
from numpy.typing import NDArray

from thalweg.drift import Martingale, estimate


def by_definition(series: NDArray[np.float64], thetas: NDArray[np.float64], m: int, epsilon: float) -> list[float]:
    """The martingale after each estimate, as Ho and Wechsler define it."""
    martingale, values = 1.0, []
    for n in range(1, len(series) + 1):
        strangeness = [abs(x - series[:n].mean()) for x in series[:n]]
        stranger = sum(other > strangeness[-1] for other in strangeness)
        tied = sum(other == strangeness[-1] for other in strangeness)
        p = (stranger + thetas[n - 1] * tied) / n
        if n > m:
            martingale *= epsilon * p ** (epsilon - 1)
        values.append(martingale)
    return values


def test_it_alarms_where_a_direct_computation_first_exceeds_h() -> None:
    random = np.random.default_rng(0)
    # Without ties but for an estimate with itself: rounding decides on others.
    series = np.concatenate([random.beta(4, 8, 60), random.beta(30, 4, 30)])
    values = by_definition(series, np.random.default_rng(5).random(90), m=20, epsilon=0.92)
    for h in (1.1, 1.5, 3.0, 10.0):
        detector = Martingale(h=h, seed=5, reflect=False)
        detector.watch(1)
        first_alarm = next(number for number, x in enumerate(series) if detector.update([x]))
        assert first_alarm == next(number for number, value in enumerate(values) if value > h)


def test_chance_seldom_exceeds_h() -> None:
    """By Doob's inequality, in one of h streams at most; of many series watched, in one of h altogether."""
    random = np.random.default_rng(2)
    exceeded = 0
    for seed in range(100):
        one = Martingale(h=10, seed=seed, reflect=False)
        one.watch(5)
        exceeded += any(one.update(estimate(random.binomial(20, 0.4, 5))) for _ in range(150))
    assert exceeded <= 15


def test_a_change_began_nu_estimates_ago() -> None:
    random = np.random.default_rng(0)
    one = Martingale(nu=7)
    one.watch(1)
    rows = estimate(random.binomial(20, np.where(np.arange(200) < 100, 0.2, 0.7)))
    [alarm] = next(alarms for x in rows if (alarms := one.update([x])))
    assert alarm.back == 7


def test_a_change_is_found_after_a_long_quiet_time() -> None:
    random = np.random.default_rng(0)
    detector = Martingale()
    detector.watch(1)
    for share in random.binomial(20, 0.3, 5000):
        detector.update(estimate([share]))
    delays = (delay for delay in range(500) if detector.update(estimate([random.binomial(20, 0.6)])))
    assert next(delays) < 200
