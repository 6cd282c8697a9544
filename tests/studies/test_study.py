"""Studies as files: what they expand to, and what is said about bad ones."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from aftereffect.core.errors import InvalidArgument, MissingExtra
from aftereffect.studies import InvalidStudy, Study
from aftereffect.studies.cells import cell_id
from aftereffect.studies.report.sections import write_report

GOOD = """
name = "mine"
title = "My study"
seed = 5
runs = 40
instances = 2
checkpoints = [10, 100]
grid = { n_arms = [2, 3], max_delay = [0, 4], horizon = 1000 }
[[instance]]
name = "split"
gap = 0
[[instance]]
name = "hard"
label = "the adversary"
grid = { horizon = [500] }
[[player]]
name = "CompositeLossWrapper"
[[player]]
name = "Naive"
on = "the adversary"
[[player]]
name = "CompositeLossWrapper"
base = "exp3"
max_delay = 2
label = "told 2"
[quick]
runs = 2
grid = { n_arms = [2] }
[report]
figures = ["curves"]
"""

SIMPLE: dict[str, Any] = {
    "grid": {"n_arms": [2], "max_delay": [1], "horizon": [100]},
    "instance": [{"name": "split"}],
    "player": [{"name": "CompositeLossWrapper"}],
}


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_file_expands_to(tmp_path: Path) -> None:
    study = Study.load(write(tmp_path, GOOD))
    cells = study.cells()
    # 2 K × 2 d, for the wrapper on two instances, naive on one, the one told 2 on two.
    assert len(cells) == 4 * (2 + 1 + 2)
    assert cells[0] == {
        "measure": "regret",
        "instance": {"name": "split", "gap": 0.0},
        "player": {"name": "CompositeLossWrapper"},
        **{"n_arms": 2, "max_delay": 0, "horizon": 1000, "runs": 40, "instances": 2, "seed": 5},
        "checkpoints": [10, 100],
    }
    assert {c["horizon"] for c in cells if c["instance"]["name"] == "hard"} == {500}
    assert {c["instance"]["name"] for c in cells if c["player"]["name"] == "Naive"} == {"hard"}
    told = [c for c in cells if c["player"].get("base") == "exp3"]
    assert {(c["max_delay"], c.get("player_max_delay")) for c in told} == {(0, 2), (4, 2)}
    assert (study.title, study.report) == ("My study", {"figures": ["curves"]})


def test_quick(tmp_path: Path) -> None:
    cells = Study.load(write(tmp_path, GOOD), quick=True).cells()
    assert len(cells) == 2 * 5
    assert {(c["runs"], c["n_arms"]) for c in cells} == {(2, 2)}


def test_a_player_plays_at_the_quick_sizes_whatever_its_own(tmp_path: Path) -> None:
    text = GOOD.replace('on = "the adversary"', "grid = { horizon = [1000], max_delay = [4] }")
    path = write(tmp_path, text.replace("{ n_arms = [2] }", "{ horizon = [200] }"))
    found = [[c for c in Study.load(path, quick).cells() if c["player"]["name"] == "Naive"] for quick in (False, True)]
    full, quick = ({(c["max_delay"], c["horizon"]) for c in cells} for cells in found)
    # The instance "hard" keeps its own horizon, the player its own delay, which [quick] does not name.
    assert (full, quick) == ({(4, 1000)}, {(4, 200), (4, 500)})


def test_a_player_without_a_cell_is_told_its_sizes_and_those_of_the_study() -> None:
    player = {"name": "Naive", "grid": {"horizon": [2000]}}
    with pytest.raises(InvalidStudy) as caught:
        Study("a", **(SIMPLE | {"player": [player]}))
    assert str(caught.value) == (
        "player 'Naive' must be able to play in at least one cell, but there is none: its instances (on) are all of "
        "['split'], its sizes (grid) {'horizon': [2000]} of {'n_arms': [2], 'max_delay': [1], 'horizon': [100], "
        "'n_units': [1]}"
    )


def test_the_same_from_python(tmp_path: Path) -> None:
    text = 'name = "a"\ngrid = {n_arms=2, max_delay=1, horizon=100}\n'
    text += '[[instance]]\nname="split"\n[[player]]\nname="CompositeLossWrapper"'
    other = Study("other", title="no part of a cell", **SIMPLE)
    assert Study.load(write(tmp_path, text)).cells() == other.cells()


def test_several_grids_and_no_cell_twice() -> None:
    grids = [{"n_arms": [2, 3], "max_delay": 1, "horizon": 100}, {"n_arms": 2, "max_delay": [1, 2], "horizon": 100}]
    cells = Study("a", **(SIMPLE | {"grid": grids})).cells()
    assert [(c["n_arms"], c["max_delay"]) for c in cells] == [(2, 1), (3, 1), (2, 2)]


def test_players_that_cannot_play_are_left_out() -> None:
    grid = {"n_arms": [2], "max_delay": [1, 2], "horizon": [100]}
    cells = Study("a", **(SIMPLE | {"grid": grid, "player": [{"name": "Blinded"}]})).cells()
    assert [c["max_delay"] for c in cells] == [1]
    with pytest.raises(InvalidStudy, match="player 'Blinded' must be able to play"):
        Study("a", **(SIMPLE | {"grid": grid | {"max_delay": [2]}, "player": [{"name": "Blinded"}]}))


def test_cells_are_copies() -> None:
    study = Study("a", **SIMPLE)
    study.cells()[0]["seed"] = 99
    assert study.cells()[0]["seed"] == 0


@pytest.mark.parametrize(("old", "new", "says"), [
    ('name = "mine"', 'name = "../mine"', "name must consist of letters"),
    ('name = "mine"', "", "name must be given"),
    ("n_arms = [2, 3]", "n_arms = [2, 2]", "grid.n_arms must hold at least one number, without repetitions"),
    ("gap = 0", "gap = 0.7", "instance.gap must be at most 0.5, but got 0.7"),
    ("gap = 0", "gap = 0\ngap_scale = 1", "instance.gap must be left out where gap_scale is given"),
    ("gap = 0", "gop = 0", "instance.gop must be a setting of 'split'"),
    ('name = "hard"', 'name = "herd"', "instance.name must be one of split"),
    ('name = "Naive"', 'name = "knave"', "player.name must be one of CompositeLossWrapper"),
    ('on = "the adversary"', 'on = "nobody"', "player 'Naive' must be able to play in at least one cell"),
    ("checkpoints = [10, 100]", 'checkpoints = "often"', "checkpoints must be one of 'log'"),
    ("[[player]]", "[player]", "must be a readable TOML file"),
    ("seed = 5", "seed = ", "must be a readable TOML file"),
])
def test_a_bad_file(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InvalidStudy) as caught:
        Study.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


def test_no_such_study() -> None:
    with pytest.raises(InvalidStudy, match=r"must be a file or one of .*, but got 'nonesuch'"):
        Study.load("nonesuch")


@pytest.mark.parametrize("key", ["instance", "player"])
def test_lists_must_be_lists(key: str) -> None:
    for wrong in ({"name": "split"}, [], "split", ["split"]):
        with pytest.raises(ValueError, match=f"{key} must be"):
            Study("a", **(SIMPLE | {key: wrong}))


def test_running_without_polars_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    loaded = Study.load("rivals", quick=True)
    with pytest.raises(MissingExtra, match=r"a study needs polars: pip install 'aftereffect\[studies\]'"):
        loaded.run(tmp_path)
    with pytest.raises(MissingExtra, match=r"aftereffect\[studies\]"):
        loaded.results(tmp_path)


def test_the_command_without_polars_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['polars'] = None; from aftereffect import cli; cli.main(['study', 'run', 'hard'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    message = "aftereffect: a study needs polars: pip install 'aftereffect[studies]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


OWN = '''
import aftereffect as ae

def losses(n_arms, max_delay, horizon, seed, worse=0.5, short=False, high=1.0):
    table = ae.tables.iid(horizon - short, means=[0.3] + [worse] * (n_arms - 1), seed=seed).values * high
    return ae.spreads.random_split(table, max_delay=max_delay, seed=seed, high=high)

class Mine(ae.rivals.BlockUCB):
    """The same under another name."""
'''


def own_study(**instance: Any) -> Study:
    return Study(
        "own",
        grid={"n_arms": 2, "max_delay": 1, "horizon": 300},
        runs=2,
        instance=[{"name": "own_things:losses", **instance}],
        player=[{"name": "own_things:Mine", "width": 0.5}, {"name": "BlockUCB", "width": 0.5}],
    )


@pytest.fixture
def own_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_things.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own_things")
def test_a_study_plays_own_losses_and_players_by_their_import_paths(tmp_path: Path) -> None:
    study = own_study(worse=0.6)
    results = study.run(tmp_path / "out", progress=False)
    rows = results.rows.filter(pl.col("round") == 300)
    assert set(rows["instance"]) == {"own_things:losses"}
    assert set(rows["instance_params"]) == {'{"worse":0.6}'}
    mine, theirs = (rows.filter(player=name)["regret"].to_list() for name in ("own_things:Mine", "BlockUCB"))
    assert mine == theirs
    page = write_report(study, results, tmp_path / "out").read_text(encoding="utf-8")
    assert "own_things:Mine" in page
    # A range is a setting of the losses, which players are told.
    wide = own_study(worse=0.6, high=2.0).run(tmp_path / "wide", progress=False)
    assert not wide.failures
    twice = wide.rows.filter(pl.col("round") == 300)
    assert set(twice["instance_params"]) == {'{"high":2.0,"worse":0.6}'}
    assert twice["corollary_bound"].to_list() == (2.0 * rows["corollary_bound"]).to_list()


@pytest.mark.usefixtures("own_things")
def test_own_losses_must_exist_know_their_settings_and_have_the_sizes(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"better must be a setting of 'own_things:losses' \(it has worse, short"):
        own_study(better=1.0)
    for path in ("own_things:missing", "no_such_module:losses", ":", "own_things:"):
        with pytest.raises(InvalidArgument, match=r"name must be importable as module:name, but '.*' is not:"):
            own_study(name=path)
    failures = own_study(short=True).run(tmp_path / "out", progress=False).failures
    assert len(failures) == 2
    assert all("must return losses of the sizes it is given" in error["message"] for error in failures.values())


def test_units_are_a_size_that_a_cell_of_one_unit_leaves_out(tmp_path: Path) -> None:
    players = [{"name": "default_player"}, {"name": "ABTest"}, {"name": "ARSExp3"}]
    grid = {"n_arms": 2, "max_delay": 1, "horizon": 60}
    alone = Study("a", **(SIMPLE | {"player": players, "grid": grid}))
    study = Study("a", **(SIMPLE | {"player": players, "grid": grid | {"n_units": [1, 3]}}))
    found = {cell_id(cell): cell for cell in study.cells()}
    assert {cell_id(cell) for cell in alone.cells()} < found.keys()
    # Not everyone can be shared by units.
    shared = [cell for cell in found.values() if "n_units" in cell]
    assert [(cell["player"]["name"], cell["n_units"]) for cell in shared] == [("default_player", 3), ("ABTest", 3)]
    rows = study.run(tmp_path, progress=False).rows
    assert set(rows.filter(pl.col("cell").is_in([cell_id(cell) for cell in shared]))["instance_params"]) == {
        '{"n_units":3}'
    }
    with pytest.raises(InvalidArgument, match=r"grid.n_units must be at least 1, but got 0"):
        Study("a", **(SIMPLE | {"grid": grid | {"n_units": [0]}}))
