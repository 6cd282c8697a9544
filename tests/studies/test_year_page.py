"""The study `year`: it holds what it says, and its page says what its rows do."""

import json
from pathlib import Path
from typing import Any

import equal_split
import polars as pl
import pytest

from aftereffect.core.errors import AftereffectWarning
from aftereffect.studies.measure import ROWS
from aftereffect.studies.report.page import Page

HOME = Path(__file__).parents[2] / "docs" / "studies"


def row(player: str, regret: float, settings: dict[str, Any] | None = None, **world: Any) -> dict[str, Any]:
    """Return a final row in which an equal split has a regret of 50."""
    told = dict(settings or {})
    sizes = {"n_arms": world.pop("n_arms", 4), "horizon": world.pop("horizon", 365), "max_delay": 14}
    found: dict[str, Any] = dict.fromkeys(ROWS) | sizes | {"round": sizes["horizon"], "measure": "regret"}
    found |= {"instance": world.pop("name", "year"), "player": player, "regret": regret, "standard_error": 1.0}
    found |= {"instance_params": json.dumps(world), "player_params": json.dumps(told), "uniform_regret": 50.0}
    return found


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=ROWS)


TEST = {"share": 0.25, "winner": "lags"}
WORLDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "centre", "centre"),
    ({"horizon": 60}, "60 days", "60 to 730 days"),
    ({"n_arms": 6, "noise": 0.4}, "6 arms, noise 0.4", "corners"),
    ({"noise": 0.3, "horizon": 90, "n_units": 60}, "90 days, 60 units, noise 0.3", "90 days, 1 to 60 units"),
    ({"half_life": 7.0}, "half-life 7", "half-lives of 1 and 7 days"),
    ({"change": "swap"}, "best and worst swap", "effects change"),
    ({"name": "advertising", "n_arms": 6}, "advertising system", "advertising system"),
]


@pytest.mark.parametrize(("settings", "name", "kind"), WORLDS)
def test_a_world_is_named_by_what_differs_from_the_centre(settings: dict[str, Any], name: str, kind: str) -> None:
    (found,) = equal_split.by_world(frame(row("LagPlayer", 10.0, **settings))).to_dicts()
    assert (found["world"], found["kind"], found["share"], found["error"]) == (name, kind, 0.2, 0.02)


def everyone(lag: float, test: float, default: float, **world: Any) -> list[dict[str, Any]]:
    """Return the rows of the players in the figure in one world; the advised player has 1 more than LagPlayer."""
    return [
        row("LagPlayer", lag, **world),
        row("ABTest", test, TEST, **world),
        row("ABTest", 45.0, {"share": 0.25}, **world),
        row("Naive", 60.0, {"base": "thompson"}, **world),
        row("default_player", default, **world),
        row("default_player", lag + 1.0, {"adviser": "lags"}, **world),
    ]


def test_the_page_says_who_has_how_much_of_an_equal_split_s_regret_and_where_another_is_ahead() -> None:
    rows = [*everyone(10.0, 25.0, 45.0), *everyone(30.0, 15.0, 40.0, half_life=7.0)]
    rows += everyone(20.0, 19.0, 50.0, noise=0.3, horizon=90, n_units=60)
    rows += everyone(40.0, 30.0, 45.0, change="swap")
    tired = {"change": "fatigue"}
    rows += [*everyone(-40.0, -10.0, 0.0, **tired), row("ABTest", -50.0, {"share": 1.0}, **tired)]
    page = Page("year")
    summary, rivals, units, changed, fatigue = equal_split.shares(page, frame(*rows))
    # By hand: (10 + 30)/2 of 50 is 40%, (25 + 15)/2 is the same, (45 + 40)/2 of 50 is 85%.
    assert "(2 worlds)" in summary
    assert "LagPlayer 40% (at most 60%: half-life 7)" in summary
    assert "A/B test, 1/4, lags 40% (at most 50%: centre)" in summary
    assert "default player 85% (at most 90%: centre)" in summary
    assert "default player, advised 42% (at most 62%: half-life 7)" in summary
    # A difference of one is less than three standard errors of 1.41.
    assert "in 1 of 4 worlds; some other player has less than LagPlayer in 2: half-life 7 (A/B test, 1/4, " in rivals
    assert "LagPlayer 40%, the best A/B test 38% (1/4, lags), the default player 100%, advised 42%" in units
    assert "best and worst swap: LagPlayer 80%, default player 90%, advised 82%, least A/B test, 1/4, lags" in changed
    # The best arm played throughout earns 0.6/0.07 = 8.571.
    assert f"LagPlayer earns {48.571 / 58.571:.0%} of what an equal split earns, the best A/B test 32%" in fatigue
    assert f"advised {47.571 / 58.571:.0%}." in fatigue
    text = page.render()
    assert text.count("<img ") == 1
    assert "fatigue" not in text.split("<table>")[1].split("</table>")[0]


def test_a_page_without_rows_of_fatigue_has_no_section_on_it() -> None:
    page = Page("year")
    assert len(equal_split.shares(page, frame(*everyone(10.0, 25.0, 45.0)))) == 2
    assert "If arms tire" not in page.render()


@pytest.mark.filterwarnings(f"ignore::{AftereffectWarning.__module__}.AftereffectWarning")
def test_readme_says_what_the_study_found() -> None:
    rows = pl.read_parquet(HOME / "year" / "rows.parquet")
    found = equal_split.by_world(rows.filter(pl.col("instance_params") != '{"change":"fatigue"}'))
    shares = equal_split.means(found)
    text = (HOME.parents[1] / "README.md").read_text(encoding="utf-8")
    for who in ("LagPlayer", "A/B test, 1/4, lags", "default player", "default player, advised"):
        assert f"{shares[who]:.0%}" in text
