"""The pages of the players: one for each of the registry, with its rate and its row in the study."""

import importlib
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from aftereffect.players import registry

HERE = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(HERE / "extensions"))
player_pages = importlib.import_module("player_pages")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("players")
    player_pages.write(path)
    return path


def test_every_player_has_a_page_and_a_rate(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.md")} == {*registry.PLAYERS, "index"}
    assert set(registry.PLAYERS) <= set(player_pages.RATES)
    index = (folder / "index.md").read_text(encoding="utf-8")
    for name, entry in registry.PLAYERS.items():
        assert f"[{entry.label()}]({name}.md)" in index
        assert f"`{player_pages.public_name(name)}`" in (folder / f"{name}.md").read_text(encoding="utf-8")


def test_the_year_of_days_is_that_of_the_published_study(folder: Path) -> None:
    rows = pl.read_parquet(HERE / "studies" / "year" / "rows.parquet").filter(instance="year", instance_params="{}")
    centre = rows.filter(player="LagPlayer", player_params="{}", horizon=365, n_arms=4).row(0, named=True)
    text = (folder / "LagPlayer.md").read_text(encoding="utf-8")
    assert f"| centre | {100.0 * centre['regret'] / centre['uniform_regret']:.1f} |" in text
    wins, worlds = map(int, re.findall(r"a year of days \| in (\d+) of (\d+) worlds", text)[0])
    assert worlds / 2 < wins < worlds


def test_a_row_is_that_of_the_published_study(folder: Path) -> None:
    rows = pl.read_parquet(HERE / "studies" / "rivals" / "rows.parquet")
    last = rows.filter(pl.col("round") == pl.col("horizon"), player="ARUCB", instance="immediate")
    expected = sum(last["regret"]) / len(last) / 40.0
    assert f"| no delays | {expected:.1f} |" in (folder / "ARUCB.md").read_text(encoding="utf-8")
    assert "players for stochastic losses | no delays," in (folder / "ARUCB.md").read_text(encoding="utf-8")
