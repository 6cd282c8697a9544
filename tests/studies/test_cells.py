"""Cells: ids made of content, seeds that all players of a group share; the losses and players that cells name."""

import hashlib
from typing import Any

import numpy as np
import pytest

from aftereffect.studies.cells import (
    SETTINGS,
    Cell,
    Draws,
    build_losses,
    build_player,
    can_play,
    cell_id,
    cell_seed,
    gap_of,
    groups,
    known,
)
from aftereffect.studies.measure import measure, rows


def cell(**changes: object) -> Cell:
    base: Cell = {
        "measure": "regret",
        "instance": {"name": "split", "gap": 0.25},
        "player": {"name": "CompositeLossWrapper"},
        **{"n_arms": 3, "max_delay": 2, "horizon": 400, "runs": 4, "instances": 1, "seed": 7, "checkpoints": 4},
    }
    return base | changes


def test_an_id_is_the_hash_of_the_text_one_would_write() -> None:
    text = (
        '{"checkpoints":4,"horizon":400,"instance":{"gap":0.25,"name":"split"},"instances":1,"max_delay":2,'
        '"measure":"regret","n_arms":3,"player":{"name":"CompositeLossWrapper"},"runs":4,"seed":7}'
    )
    assert cell_id(cell()) == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert cell_id(dict(reversed(cell().items()))) == cell_id(cell())


def test_every_part_is_in_the_id() -> None:
    changed: list[Cell] = [
        {"measure": "stability"},
        {"instance": {"name": "split"}},
        {"player": {"name": "CLW2018"}},
        *({name: 9} for name in ("n_arms", "max_delay", "horizon", "runs", "instances", "seed", "checkpoints")),
        {"player_max_delay": 1},
    ]
    assert len({cell_id(cell(**change)) for change in ({}, *changed)}) == len(changed) + 1


@pytest.mark.parametrize(
    "change", [{"player": {"name": "CLW2018"}}, {"runs": 8}, {"checkpoints": "log"}, {"player_max_delay": 1}]
)
def test_players_of_a_group_meet_the_same_losses(change: Cell) -> None:
    other = cell(**change)
    assert len(groups([cell(), other])) == 1
    for purpose in ("losses 0", "runs"):
        assert cell_seed(cell(), purpose) == cell_seed(other, purpose)
    assert (build_losses(cell()).arm_totals() == build_losses(other).arm_totals()).all()


@pytest.mark.parametrize(
    "change", [{"instance": {"name": "delays", "gap": 0.25}}, {"horizon": 401}, {"seed": 8}, {"n_arms": 4}]
)
def test_other_groups_have_seeds_of_their_own(change: Cell) -> None:
    other = cell(**change)
    assert len(groups([cell(), other])) == 2
    purposes = ("losses 0", "losses 1", "runs")
    assert len({cell_seed(one, purpose) for one in (cell(), other) for purpose in purposes}) == 6


def test_draws_differ_and_are_kept() -> None:
    draws = Draws(cell(instances=2))
    assert draws[0] is draws[0]
    assert (draws[0].arm_totals() != draws[1].arm_totals()).any()


def test_draws_come_in_waves_that_fit_and_the_first_stays() -> None:
    class Small(Draws):
        ROOM = 2 * 24 * 3 * 400

    draws = Small(cell(instances=5))
    first, seen = draws[0], []
    for wave in draws.waves():
        assert all(draws[draw] is draws[draw] for draw in wave)
        assert draws[0] is first
        seen.append(list(wave))
    assert seen == [[0, 1], [2, 3], [4]]


def test_costly_losses_that_are_played_often_are_stored_and_play_alike() -> None:
    few, many = Draws(cell(runs=8)), Draws(*(cell(runs=8, player={"name": str(k)}) for k in range(3)))
    assert (type(few[0].params).__name__, type(many[0].params).__name__) == ("Split", "Dense")
    assert many[0].components().tobytes() == few[0].components().tobytes()
    arms = np.arange(400) % 3
    assert many[0].totals(arms).tolist() == few[0].totals(arms).tolist()


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_instance_has_the_sizes_of_its_cell(name: str) -> None:
    arms = 6 if name == "advertising" else 3
    one = cell(instance={"name": name}, n_arms=arms)
    losses = build_losses(one)
    assert (losses.n_arms, losses.max_delay, losses.horizon) == (arms, 2, 400)
    assert build_player(one, losses).n_arms == arms


@pytest.mark.parametrize("spread", ["split", "delays", "fixed", "geometric", "immediate"])
def test_delays_are_known_as_they_are(spread: str) -> None:
    # When a unit of effect arrives, on average over all components there are: 400 rounds of 3 arms.
    one = cell(instance={"name": "drifting", "spread": spread, "law": "constant"}, horizon=4000)
    parts = build_losses(one).components().sum(axis=(0, 2))
    mean = float(parts @ [0, 1, 2] / parts.sum())
    said = known(one)
    # Delays drawn at random: standard error at most sqrt(2/3)/sqrt(4000) = 0.013; 5 of them, false alarms 6e-7.
    assert said[0] == pytest.approx(mean, abs=0.065 if spread in ("split", "delays") else 1e-12)
    if said[2] is not None:
        assert said[2] == pytest.approx(parts / parts.sum(), abs=1e-12)


def test_humps_and_arms_that_fade_apart() -> None:
    def shares(instance: Cell) -> Any:
        parts = build_losses(cell(instance=instance, max_delay=3, horizon=4000)).components().sum(axis=0)
        return (parts / parts.sum(axis=0)).T

    # s² · 2^(−s) for s = 0, ..., 3: 0, 1/2, 1, 9/8.
    hump = np.array([0.0, 4.0, 8.0, 9.0]) / 21.0
    assert shares({"name": "geometric", "half_life": 1.0, "rise": 2.0}) == pytest.approx(np.tile(hump, (3, 1)))
    weights = known(cell(instance={"name": "geometric", "half_life": 1.0, "rise": 2.0}, max_delay=3))[2]
    assert weights == pytest.approx(hump)
    # Half-lives of 1, 2 and 3 rounds.
    fading = np.array([[2.0 ** (-s / h) for s in range(4)] for h in (1, 2, 3)])
    expected = fading / fading.sum(axis=1, keepdims=True)
    assert shares({"name": "late_bills", "half_life": 3.0}) == pytest.approx(expected)


def test_a_gap_by_scale() -> None:
    # sqrt(3 * 3 / 400) = 3/20.
    assert gap_of(cell(instance={"name": "split", "gap_scale": 2.0})) == pytest.approx(0.3, rel=1e-15)
    assert gap_of(cell(instance={"name": "split", "gap_scale": 100.0})) == 0.5
    means = build_losses(cell(instance={"name": "anonymous", "gap": 0.25})).means
    assert means.tolist() == [0.75, 0.5, 0.5]


def test_who_can_play() -> None:
    def can(player: str, **change: object) -> bool:
        return can_play(cell(player={"name": player}, **change))

    assert can("CompositeLossWrapper")
    assert not can("Blinded")
    assert can("Blinded", player_max_delay=1)
    assert can("ODAAFV")
    assert not can("ODAAF", instance={"name": "late_bills"})
    assert can("LinearComposite", instance={"name": "geometric"})
    assert not can("LinearComposite")


@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
def test_a_player_with_its_own_delay() -> None:
    short = cell(player_max_delay=1)
    told = [rows(one, measure(one, Draws(one), 1))["player_params"].unique().to_list() for one in (short, cell())]
    assert told == [['{"max_delay":1}'], ["{}"]]
    player = build_player(short, build_losses(short))
    assert player.max_delay == 1
    # Totals beyond what its own d allows are clipped; a player told the truth raises.
    assert player.out_of_range == "clip"
    assert build_player(cell(), build_losses(cell())).out_of_range == "raise"
