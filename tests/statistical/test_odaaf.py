"""ODAAF on the experiments of Pike-Burke et al. (2018): where its curves turn, and how its regret compares.

Two Bernoulli arms with means 0.5 and 0.6, T = 250,000, delays with mean 25 or 50. Given its lengths the play
is settled as long as the worse arm goes out after phase 4 (D = 1/16 < 0.1 < 1/8), so every run has the same
turning points and the regret 0.1 n_4. The likeliest exception is in the shortest phase 3, that of ODAAF-B:
the gap of its means reaches 1/8 where 0.1 is expected with a chance of about 0.3 % a run (2.8 standard errors
of √(0.49/6030) for mean delay 25). Seeds are fixed, and the runs below are not among the exceptions.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.bandits.baselines import UCB1
from aftereffect.engines.rounds import simulate_rounds
from aftereffect.engines.workload import Workload
from aftereffect.players.labelled.joulani2013 import QPMD
from aftereffect.players.rivals.phased_elimination import ODAAF, ODAAFB, ODAAFV

T, MEANS = 250_000, [0.5, 0.6]
COMMON: dict[str, Any] = {"horizon": T, "direction": "maximize"}
HALF_NORMAL = 1.0 - 2.0 / math.pi

# The delay laws of the experiments, and where those without a bound of their own are cut.
LAWS: dict[str, tuple[tuple[Any, ...], int]] = {
    "Unif(0,50)": (("uniform", 0, 50), 50),
    "Unif(0,100)": (("uniform", 0, 100), 100),
    "Exp(50), d=75": (("exponential", 50.0), 75),
    "Exp(50), d=250": (("exponential", 50.0), 250),
    "Exp(50)": (("exponential", 50.0), 1000),
    "Pois(50)": (("poisson", 50.0), 150),
    "N+(50,25)": (("half_normal", 50.0, 25.0), 150),
    "N+(50,250)": (("half_normal", 50.0, 250.0), 250),
}


def mean_delay(law: str) -> float:
    return 25.0 if law == "Unif(0,50)" else 50.0


def odaaf(law: str) -> Any:
    return ODAAF(2, mean_delay=mean_delay(law), mean_delay_offset=1, **COMMON)


def odaaf_b(law: str) -> Any:
    return ODAAFB(2, mean_delay=mean_delay(law), max_delay=LAWS[law][1], **COMMON)


def odaaf_v(law: str) -> Any:
    known = {"N+(50,25)": 25.0 * HALF_NORMAL, "N+(50,250)": 250.0 * HALF_NORMAL}
    V = known.get(law, 2500.0 if law == "Exp(50)" else 50.0)
    return ODAAFV(2, mean_delay=mean_delay(law), delay_variance=V, **COMMON)


@functools.cache
def world(law: str) -> ae.Losses:
    delays, max_delay = LAWS[law]
    return ae.spreads.anonymous_iid(T, means=MEANS, delay_law=delays, seed=1, max_delay=max_delay)


# Read off the published figure: begin and end of the worse arm's last stretches. Those of ODAAF and ODAAF-B
# are read to the round, and whether it counts from 0 or 1 is not known: one round. Those of ODAAF-V are less
# sharp: for Poisson delays n_3 as read off phase 3 and off phase 4 differs by 0.8 %; for the others V fits to
# 1 %, which moves a turn by 0.2 %.
TURNS: list[tuple[Callable[[str], Any], str, list[int], float]] = [
    (odaaf, "Unif(0,50)", [2699, 5524, 8349, 16323, 24297, 46426], 0.0),
    (odaaf, "Unif(0,100)", [4251, 8673, 13095, 25215, 37336, 69815], 0.0),
    (odaaf_b, "Unif(0,50)", [10275, 14182, 29743, 41398], 0.0),
    (odaaf_b, "Exp(50), d=75", [12850, 17463, 35209, 48341], 0.0),
    (odaaf_v, "Pois(50)", [21938, 29310, 55003, 73634], 0.01),
    (odaaf_v, "N+(50,25)", [14660, 19734, 39042, 53251], 0.0025),
    (odaaf_v, "N+(50,250)", [29166, 38248, 69947, 92601], 0.0025),
]


@pytest.mark.parametrize(("make", "law", "published", "share"), TURNS)
def test_the_curves_turn_where_they_were_published(
    make: Callable[[str], Any], law: str, published: list[int], share: float
) -> None:
    sim = ae.simulate(make(law), world(law), runs=1, trace=True)
    assert sim.engine == "rounds"
    blocks = sim.traces[0]
    ends = np.append(blocks.starts[1:] - 1, T)
    worse = blocks.arms == 0
    turns = np.column_stack([blocks.starts[worse] - 1, ends[worse]]).ravel()
    assert len(turns) == 2 * 4, "one stretch a phase, and out after the fourth"
    found = turns[-len(published) :]
    allowed = [1 + share * turn for turn in published]
    assert (np.abs(found - published) <= allowed).all(), f"found {found.tolist()}"


def test_as_printed_the_curves_would_turn_elsewhere() -> None:
    # The offset is no matter of taste: with mE as printed, n_1 for mean delay 50 is 1350, not half of 4251.
    assert ODAAF(2, mean_delay=50.0, **COMMON).lengths[0] == 1350


@functools.cache
def regret(make: Callable[[str], Any], law: str) -> float:
    """The mean pseudo-regret over ten fresh draws, all of them alike."""
    sim = ae.simulate(make(law), world(law), runs=10, instances=10, seed=2)
    np.testing.assert_allclose(sim.pseudo_regret, sim.pseudo_regret[0], rtol=1e-9)
    return float(sim.pseudo_regret.mean())


# 0.1 n_4 as the published turning points imply it. Without a bridge the worse arm's stretches add up to n_4,
# and half the first turn is n_1; with one, phase 4 turns at 2n_3 + n_4 and n_3 + 2n_4. A turn is known to a
# round.
@pytest.mark.parametrize(("make", "law", "implied"), [
    (odaaf, "Unif(0,50)", (46426 - 24297 + 16323 - 8349 + 5524 - 2699 + 2699 / 2) / 10),
    (odaaf, "Exp(50)", (69815 - 37336 + 25215 - 13095 + 8673 - 4251 + 4251 / 2) / 10),
    (odaaf_b, "Unif(0,50)", (2 * 41398 - 29743) / 3 / 10),
    (odaaf_b, "Exp(50), d=250", (2 * 48341 - 35209) / 3 / 10),
])
def test_regret_is_that_of_the_turning_points(make: Callable[[str], Any], law: str, implied: float) -> None:
    assert regret(make, law) == pytest.approx(implied, abs=0.5)


# Published regret over that of QPM-D at T. The ratio of two of them is free of QPM-D, and known to half a
# unit of each last digit. With exponential delays ODAAF-V has V = 2500, so long phases that at T it stands on
# the bridge after phase 2, with a regret of 0.1 n_2.
PUBLISHED = [
    ("Unif(0,50)", 16.6, odaaf_b, 8.5),
    ("Unif(0,100)", 24.6, odaaf_b, 9.8),
    ("Exp(50), d=75", 25.0, odaaf_b, 10.0),
    ("Exp(50), d=250", 25.2, odaaf_b, 10.1),
    ("Exp(50)", 25.0, odaaf_v, 44.7),
    ("Pois(50)", 25.0, odaaf_v, 15.0),
    ("N+(50,25)", 24.6, odaaf_v, 10.8),
    ("N+(50,250)", 24.3, odaaf_v, 18.2),
]


@pytest.mark.parametrize(("law", "plain", "make", "variant"), PUBLISHED)
def test_the_variants_compare_as_published(law: str, plain: float, make: Callable[[str], Any], variant: float) -> None:
    least, most = (plain - 0.05) / (variant + 0.05), (plain + 0.05) / (variant - 0.05)
    assert least <= regret(odaaf, law) / regret(make, law) <= most


def labelled_regrets(law: str, draws: int) -> np.ndarray:
    """The pseudo-regret of QPM-D over UCB1 on fresh draws.

    It hears of a reward of 0 at once, since nothing of it is still to land; the published one waited for it.
    """
    found = []
    for draw in range(draws):
        losses = world(law).redraw(100 + draw)
        player = QPMD(UCB1(2), max_delay=losses.max_delay, direction="maximize")
        gaps = np.array([0.1, 0.0])
        plan = Workload(player, losses, draw, 0, 1, np.array([T]), gaps, False, 1, lambda rounds: None)
        found.append(simulate_rounds(plan, player.kernel()).pseudo[0, -1])
    return np.array(found)


@pytest.mark.parametrize("law", ["Unif(0,50)", "Pois(50)"])
def test_regret_over_that_of_labelled_feedback(law: str) -> None:
    q = labelled_regrets(law, 30)
    # Both means of QPM-D err, this one over 30 draws and the published one over 200; the regret of ODAAF does
    # not. z = 4: a false alarm rate of 6e-5 a comparison, four of them in all.
    error = q.std(ddof=1) / q.mean() * math.sqrt(1 / 30 + 1 / 200)
    for name, plain, make, variant in PUBLISHED:
        if name == law:
            for player, published in ((odaaf, plain), (make, variant)):
                ratio = regret(player, law) / q.mean()
                assert abs(ratio - published) <= 4.0 * error * ratio + 0.05
