"""The published studies, built in or in docs/studies: well formed, of the stated size, and able to run to a report."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from aftereffect.players import registry
from aftereffect.studies.cells import SETTINGS, cell_id
from aftereffect.studies.report import page as page_module
from aftereffect.studies.report.sections import planned, write_report
from aftereffect.studies.study import BUILTIN, Study, builtin_names

HOME = Path(__file__).parents[2] / "docs" / "studies"
FILES = {path.stem: path for path in (*BUILTIN.glob("*.toml"), *HOME.glob("*.toml"))}
NAMES = sorted(FILES)


def rounds(study: Study) -> int:
    return sum(cell["runs"] * cell["horizon"] for cell in study.cells())


def test_all_are_there() -> None:
    assert builtin_names() == ["advertising", "hard", "rivals"]
    own = {"adaptive", "anonymity", "bounds", "campaigns", "odaaf", "promotions", "rates", "stability"}
    own |= {"windows", "year"}
    assert FILES.keys() == own | {*builtin_names()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quick", [True, False])
def test_well_formed(name: str, quick: bool) -> None:
    study = Study.load(FILES[name], quick=quick)
    assert study.name == name
    assert len(study.title) > 20
    assert len(study.about) > 200
    assert len({cell_id(cell) for cell in study.cells()}) == len(study.cells())
    assert planned(study)


@pytest.mark.parametrize("name", NAMES)
def test_quick_is_a_tenth_at_most(name: str) -> None:
    assert rounds(Study.load(FILES[name], quick=True)) <= min(1.2e8, 0.1 * rounds(Study.load(FILES[name])))


def test_rivals_has_everyone_everywhere_but_the_lag_player_which_the_study_year_has() -> None:
    cells = Study.load("rivals").cells()
    # A round of it takes a thousand times as long as one of the others.
    assert {cell["player"]["name"] for cell in cells} == set(registry.PLAYERS) - {"LagPlayer"}
    assert "LagPlayer" in {cell["player"]["name"] for cell in Study.load(FILES["year"]).cells()}
    compared = [(name, settings) for name, settings in registry.COMPARED if name != "LagPlayer"]
    labels = {registry.find(name).label(settings) for name, settings in compared}
    settings = [dict(cell["player"]) for cell in cells]
    assert {registry.find(given.pop("name")).label(given) for given in settings} == labels
    elsewhere = {"advertising", "year"}
    assert {cell["instance"]["name"] for cell in cells} == set(SETTINGS) - elsewhere


def small(name: str) -> Study:
    """Return a study cut down to one or two sizes and few runs, its own instances, players and report."""
    given: dict[str, Any] = tomllib.loads(FILES[name].read_text(encoding="utf-8"))
    delays = {"rates": [4, 16], "windows": [40]}.get(name, [2])
    given["quick"] = {"runs": 2, "instances": 1, "checkpoints": "log"}
    given["quick"]["grid"] = {"n_arms": [2, 4], "max_delay": delays, "horizon": [2000, 4000]}
    for instance in given["instance"]:
        if "grid" in instance:
            instance["grid"] |= {"horizon": [2000, 4000]}
        # The adversary's gap must fit into the range of losses, which is narrower at a short horizon.
        if "gap_factor" in instance:
            instance["gap_factor"] = min(instance["gap_factor"], 16.0)
    if name == "hard":
        given["instance"] = [{"name": "hard", "gap_factor": factor} for factor in (1.0, 16.0)]
    return Study.from_table(given, quick=True)


@pytest.mark.parametrize("name", ["anonymity", "bounds", "hard", "rates", "stability", "windows"])
def test_runs_to_a_report(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The page holds figures as SVG; that they are saved in every format is tested once, with the report.
    monkeypatch.setattr(page_module, "FORMATS", ("svg",))
    study = small(name)
    results = study.run(tmp_path, progress=False)
    assert not results.failures
    page = write_report(study, results, tmp_path).read_text(encoding="utf-8")
    assert f"{len(study.cells())} of {len(study.cells())} cells are finished" in page
    drawn = {"ratios": 0, "wrong_delay:wrong_delay": 0, "scaling:scaling": 2}
    images = sum(drawn.get(figure, 1) for figure in study.report["figures"]) + len(study.report.get("against", []))
    assert page.count("<img ") == images
    assert ("How to read it" in page) == ("reading" in study.report)


def test_a_folder_of_the_same_name_hides_no_built_in_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rivals").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Study.load("rivals").name == "rivals"
