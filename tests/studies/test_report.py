"""The report: self-contained, true to the rows, the same bytes for the same rows, and clear about bad requests."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import theorems
from tests.refusals import refuses

from aftereffect.core.errors import InvalidArgument
from aftereffect.players import registry
from aftereffect.studies.report import frames, sections
from aftereffect.studies.report import page as page_module
from aftereffect.studies.report.charts import COLOURS, MOST, Drawing, looks
from aftereffect.studies.report.page import Page, Shaded, large
from aftereffect.studies.report.sections import planned, write_report
from aftereffect.studies.results import Results
from aftereffect.studies.study import Study

GRID = {"n_arms": [2, 4], "max_delay": [0, 2], "horizon": [300, 600]}
PLAYERS = [{"name": "CompositeLossWrapper", "base": base} for base in ("tsallis", "exp3", "uniform")]
INSTANCES = [{"name": "split", "gap": 0.4}, {"name": "split", "gap": 0.1}]


def study(**changes: Any) -> Study:
    given: dict[str, Any] = {
        "grid": GRID,
        "player": PLAYERS,
        "instance": INSTANCES,
        "title": "Losses <small> & late",
        "about": "First paragraph.\n\nSecond, with d = 0.",
        "runs": 4,
        "report": {
            "figures": ["curves", "scaling:scaling", "theorems:bounds", "ratios"],
            "against": ["gap"],
            "reading": "Mind the gap & K^2.",
        },
    }
    return Study("little", **(given | changes))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return study().run(tmp_path_factory.mktemp("study"), progress=False)


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report's page, with its figures beside it; nothing changes them."""
    return write_report(study(), results, tmp_path_factory.mktemp("report"))


@pytest.fixture(autouse=True)
def quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save figures in every format only where the files beside the page are looked at."""
    if "written" not in request.fixturenames:
        monkeypatch.setattr(page_module, "FORMATS", ("svg",))


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_page_is_self_contained_and_complete(written: Path) -> None:
    page = read(written)
    assert "Losses <small> & late" in page.text
    assert "Second, with d\u00a0=\u00a00." in page.text
    assert f"{48:,} of 48 cells are finished" in page.text
    assert "Mind the gap & K2." in page.text
    images = [attrs["src"] or "" for tag, attrs in page.tags if tag == "img"]
    assert len(images) == 4
    for source in images:
        kind, _, data = source.partition(";base64,")
        assert kind == "data:image/svg+xml"
        assert b"<svg" in base64.b64decode(data)
    assert all(attrs.get("alt") for tag, attrs in page.tags if tag == "img")
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe"}
    links = [attrs["href"] or "" for tag, attrs in page.tags if tag == "a"]
    anchors = {attrs.get("id") for tag, attrs in page.tags if tag == "h2"}
    assert len(anchors) == 10
    # The first figure is below the title; its section links to it.
    assert set(links) == {f"#{anchor}" for anchor in anchors} | {"#first-figure"}
    styles = written.read_text(encoding="utf-8")
    assert "url(" not in styles
    assert "@import" not in styles
    assert written.name == "report.html"
    assert written.stat().st_size < 2_000_000


def test_how_to_make_it_again(results: Results, tmp_path: Path) -> None:
    """The command names the file, with own modules beside it; a study from Python is made by its program."""
    spec = tmp_path / "a study.toml"
    spec.write_text(
        'name = "little"\nruns = 2\ngrid = { n_arms = 2, max_delay = 1, horizon = 50 }\n'
        '[[instance]]\nname = "split"\n[[player]]\nname = "CompositeLossWrapper"\n'
    )
    mine = Study.load(spec, quick=True)
    page = read(write_report(mine, mine.run(tmp_path / "mine"), tmp_path / "mine"))
    assert f"aftereffect study run '{spec}' --quick" in page.text
    (tmp_path / "mine_again.py").write_text("import aftereffect\n\nMine = aftereffect.rivals.BlockUCB\n")
    spec.write_text(spec.read_text().replace("CompositeLossWrapper", "mine_again:Mine"))
    mine = Study.load(spec)
    page = read(write_report(mine, mine.run(tmp_path / "own"), tmp_path / "own"))
    assert f"aftereffect study run '{spec}'" in page.text
    assert "the program that defines the study" in read(write_report(study(), results, tmp_path)).text
    assert Study.load("rivals").source == "rivals"


def test_figures_are_saved_in_three_formats(written: Path) -> None:
    heads = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for name in ("curves", "scaling", "bounds", "against-gap"):
        for form, head in heads.items():
            assert (written.parent / "figures" / f"{name}.{form}").read_bytes().startswith(head)


def test_same_rows_give_the_same_bytes(results: Results, written: Path, tmp_path: Path) -> None:
    again = write_report(study(), results, tmp_path)
    assert again.read_bytes() == written.read_bytes()
    names = sorted(path.name for path in (written.parent / "figures").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "figures").iterdir())
    for name in names:
        assert (tmp_path / "figures" / name).read_bytes() == (written.parent / "figures" / name).read_bytes()


def test_findings_follow_the_rows(results: Results, tmp_path: Path) -> None:
    """Sentences are computed: with other regrets another player wins, and a bound is broken."""
    winner = re.compile(r"Least regret of all players, whatever they need: (.*?) on both instances\.")
    for who in ("wrapper, Exp3", "uniform play"):
        named = frames.readable(results.rows)
        better = pl.when(named["who"] == who).then(pl.lit(7.0)).otherwise(pl.lit(1e6))
        rows = results.rows.with_columns(better.alias("regret"))
        asked = study(report={"figures": ["theorems:bounds", "ratios"]})
        text = read(write_report(asked, Results(rows, results.times, {}, []), tmp_path)).text
        found = winner.search(text)
        assert found.group(1) == who
        assert "is broken in 8" in text


def test_missing_and_failed_cells_are_told(results: Results, tmp_path: Path) -> None:
    some = results.rows.filter(pl.col("n_arms") == 2)
    asked = study(report={"figures": []})
    text = read(write_report(asked, Results(some, results.times, {"x": {}}, ["y"]), tmp_path)).text
    # 2 instances, 3 players, 2 delays; 4 runs of 300 and of 600 rounds: 12 · 4 · 900.
    assert "24 of 48 cells are finished: 43,200 simulated rounds." in text
    assert "1 cells failed and are missing here." in text


def test_sections_without_rows_are_left_out_and_say_why(results: Results, tmp_path: Path) -> None:
    figures = ["paper_tuning:adaptive", "price_of_anonymity:price", "theorems:stability", "wrong_delay:wrong_delay"]
    page = read(write_report(study(report={"figures": figures}), results, tmp_path))
    for name in figures:
        assert f"The section {name} is left out: it needs " in page.text
    one = results.rows.filter(n_arms=2, max_delay=0, horizon=300)
    partial = Results(one, results.times, {}, [])
    page = read(write_report(study(report={"figures": ["scaling:scaling", "ratios"]}), partial, tmp_path))
    assert "section scaling:scaling is left out: it needs players at several sizes, and there are none." in page.text
    # The reference player, and one instance, have no finished cell yet.
    lone = one.filter(pl.col("player_params").str.contains("exp3") | pl.col("instance_params").str.contains("0.4"))
    lone = lone.filter(~pl.col("player_params").str.contains("tsallis"))
    write_report(study(report={"figures": ["curves", "ratios"]}), Results(lone, results.times, {}, []), tmp_path)


def test_a_report_on_stability_leaves_out_what_shows_regret(tmp_path: Path) -> None:
    own = ["price_of_anonymity:price", "wrong_delay:wrong_delay", "paper_tuning:adaptive"]
    figures = ["curves", "scaling:scaling", "theorems:bounds", "ratios", *own]
    little = study(measure="stability", player=PLAYERS[:2], report={"figures": figures, "against": ["gap"]})
    page = read(write_report(little, little.run(tmp_path / "run", progress=False), tmp_path))
    assert page.text.count(" is left out: it needs ") == len(figures) + 1


def test_players_of_ones_own_are_apart_as_their_needs_are_unknown(results: Results) -> None:
    shown = frames.finals(frames.readable(results.rows))
    mine = pl.when(pl.col("who") == "wrapper, Exp3").then(pl.lit("mine:Player")).otherwise("player")
    own = shown.with_columns(player=mine)
    for here in sections.best(own).values():
        assert here["own"][0] == "wrapper, Exp3"
        assert here["any losses"][0] != "wrapper, Exp3"


def test_nothing_to_report_is_an_error(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="results must hold rows of a finished cell"):
        write_report(study(), Results(results.rows.head(0), results.times.head(0), {}, []), tmp_path)
    assert not list(tmp_path.iterdir())


test_bad_report_table = refuses([
    ({"figures": ["curve"]}, "report.figures must be one of 'curves', .*, but got 'curve'"),
    ({"figures": ["nowhere:curve"]}, "report.figures must be importable as module:name, but 'nowhere:curve'"),
    ({"figures": "curves"}, "report.figures must be a list of names, but got 'curves'"),
    ({"against": ["height"]}, "report.against must hold sizes and settings of the study, but got 'height'"),
    ({"colour": "red"}, "report.colour must be figures, against or reading, but it is none of these"),
    ({"reading": ["x"]}, r"report.reading must be text, but got \['x'\]"),
], lambda report: planned(study(report=report)))


def test_a_setting_that_no_finished_cell_has_is_an_error(results: Results, tmp_path: Path) -> None:
    asked = study(instance=[*INSTANCES, {"name": "hard", "gap_factor": 2.0}], report={"against": ["gap_factor"]})
    message = r"report.against must be a size or a setting that rows have, .*'gap_factor'"
    with pytest.raises(InvalidArgument, match=message):
        write_report(asked, results, tmp_path)


def test_stability_is_held_against_theory(tmp_path: Path) -> None:
    little = study(measure="stability", player=PLAYERS[:2], report={"figures": ["theorems:stability"]}, checkpoints=3)
    results = little.run(tmp_path / "run", progress=False)
    text = read(write_report(little, results, tmp_path)).text
    assert text.count("the mean move of an update never exceeds ξ") == 2
    rows = results.rows.with_columns(value=pl.col("theory") * 2.0, standard_error=pl.lit(0.0))
    page = Page("t")
    notes = theorems.stability(page, rows)
    assert all("exceeds, at" in note and "200% to 200%" in note for note in notes)


def hand_made() -> pl.DataFrame:
    """Two instances and three players at one size, with regrets to reckon with by head."""
    regrets = {("a", "x"): 10.0, ("b", "x"): 5.0, ("c", "x"): -2.5, ("a", "y"): -1.0, ("b", "y"): 4.0}
    return pl.DataFrame([
        {"who": who, "where": where, "n_arms": 2, "max_delay": 1, "horizon": 9, "seed": 0, "regret": regret}
        | {"labelled": who == "b", "stochastic": who == "c", "player": who}
        for (who, where), regret in regrets.items()
    ])


def test_ratios_by_hand() -> None:
    on_x = {("a", "x"): (10.0, 10.0), ("b", "x"): (5.0, 10.0), ("c", "x"): (-2.5, 10.0)}
    assert sections.relative(hand_made(), "a") == on_x | {("a", "y"): (-1.0, -1.0), ("b", "y"): (4.0, -1.0)}
    # On y only two play; of three kinds of players, the best on each instance.
    found = sections.best(hand_made())
    assert found == {
        "x": {"stochastic losses": ("c", -2.5), "labels": ("b", 5.0), "any losses": ("a", 10.0)},
        "y": {"any losses": ("a", -1.0), "labels": ("b", 4.0)},
    }
    first, *rest = sections.tally(found, ["stochastic losses"])
    assert first.endswith("c on 1 of 2 instances (x); a on 1 of 2 instances (y).")
    assert "c on 1 of 2 sizes (x); a on 1 of 2 sizes (y)." in sections.tally(found, [], "sizes")[0]
    # Of a kind with one player it says nothing to name the best.
    assert rest == ["Least regret among the players for stochastic losses: c on 1 of 2 instances (x)."]


def test_a_best_player_within_two_standard_errors_of_the_next_is_no_clear_winner() -> None:
    # On x the two least are 7.5 apart, on y 5; standard errors of 2 and of √2 · 2 for the difference.
    rows = hand_made().with_columns(standard_error=pl.lit(2.0))
    (note,) = sections.near_ties(rows)
    assert note.endswith("less than two standard errors above it, on y (a, b).")
    assert sections.near_ties(rows.with_columns(standard_error=pl.lit(1.0))) == []
    # The mean of four sizes has half the standard error of one.
    sizes = pl.concat([rows.with_columns(horizon=pl.lit(T)) for T in (9, 10, 11, 12)])
    assert sections.near_ties(sizes) == []


def test_regret_surely_below_0_is_told(results: Results, tmp_path: Path) -> None:
    named = frames.readable(results.rows)
    who, (place, other) = named["who"][0], frames.names(named, "where")
    # -2.5 is five standard errors below 0, -1 only two and a half.
    changes = {"regret": {place: -2.5, other: -1.0}, "standard_error": {place: 0.5, other: 0.4}}
    theirs = [pl.col("where").replace_strict(values).alias(name) for name, values in changes.items()]
    rows = pl.concat([named.filter(pl.col("who") != who), named.filter(who=who).with_columns(theirs)])
    asked = study(report={"figures": ["ratios"]})
    found = Results(rows.select(results.rows.columns), results.times, {}, [])
    text = read(write_report(asked, found, tmp_path)).text
    assert f"Regret is below 0, better than the best fixed arm, on {place} (1 player)." in text
    once = rows.with_columns(pl.col("regret").clip(pl.when(n_arms=2, max_delay=0, horizon=300).then(-9.0).otherwise(0)))
    found = Results(once.select(results.rows.columns), results.times, {}, [])
    text = read(write_report(asked, found, tmp_path)).text
    assert f"on {place} (1 player at 1 of 8 sizes)." in text


def test_reference_lines_are_in_the_unit_of_the_losses(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With effects up to 120 all regrets and bounds are 120 times as large; below 0 there are no bounds."""
    drawn: list[tuple[Drawing, str]] = []
    monkeypatch.setattr(Page, "figure", lambda page, drawing, caption: drawn.append((drawing, caption)))
    money = [name for name in results.rows.columns if name.endswith(("regret", "bound", "error"))]
    scaled = results.rows.with_columns(pl.col(money) * 120.0)
    without = results.rows.with_columns(corollary_bound=pl.lit(None, pl.Float64), bound=pl.lit(None, pl.Float64))
    for rows in (results.rows, scaled, without):
        write_report(study(report={"figures": ["curves"]}), Results(rows, results.times, {}, []), tmp_path)
    lines = [
        [{line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines} for ax in drawing.figure.axes]
        for drawing, _ in drawn
    ]
    for plain, scaled_up, none in zip(*lines, strict=True):
        assert plain.keys() == scaled_up.keys()
        assert "rate of the lower bound" in plain
        for name in plain:
            np.testing.assert_allclose(scaled_up[name], 120.0 * plain[name])
        assert plain.keys() - none.keys() >= {"rate of the lower bound"}
    assert "so panels of other losses have none" in drawn[2][1]
    assert "so panels of other losses have none" not in drawn[1][1]


def test_players_worse_than_uniform_play_are_told_with_the_cell(results: Results) -> None:
    shown = frames.finals(frames.readable(results.rows, apart=("gap",))).with_columns(x=pl.lit(0.4))
    one = {"who": "wrapper, Exp3", "n_arms": 4, "max_delay": 2, "horizon": 600}
    chosen = pl.all_horizontal(pl.col(name) == value for name, value in one.items())
    regret = pl.when(chosen).then(3.0 * pl.col("uniform_regret")).otherwise(1.0)
    rows = shown.with_columns(regret=regret, standard_error=pl.lit(0.1))
    told = "worse than uniform play: wrapper, Exp3 (up to 300% in one cell: "
    assert sections.worse_than_uniform(rows, "gap", "random splits") == [
        f"random splits: {told}gap 0.4, K = 4, d = 2, T = 600)."
    ]
    assert sections.worse_than_uniform(rows, "horizon", "On some instances") == [
        f"On some instances: {told}random splits, K = 4, d = 2, T = 600)."
    ]


def test_a_regret_below_0_is_no_share(results: Results) -> None:
    shown = frames.finals(frames.readable(results.rows, apart=("gap",))).with_columns(x=pl.col("horizon"))
    rows = shown.with_columns(regret=pl.when(who="wrapper, Exp3").then(-5.0).otherwise(pl.col("uniform_regret")))
    [note] = sections.trends(rows, "horizon", "random splits")
    assert note == (
        "random splits: from T = 300 to T = 600, the regret of wrapper, Tsallis FTRL goes from 100% to 100% of uniform "
        "play's; at T = 600, wrapper, Exp3 has the least, below 0, better than the best fixed arm."
    )


def test_panels_show_lines_that_dip_below_their_last_value(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle = results.rows["round"].is_between(100, 200)
    rows = results.rows.with_columns(pl.when(middle).then(-80.0).otherwise(pl.col("regret")).alias("regret"))
    drawings: list[Drawing] = []
    monkeypatch.setattr(Page, "figure", lambda page, drawing, caption: drawings.append(drawing))
    write_report(study(report={"figures": ["curves"]}), Results(rows, results.times, {}, []), tmp_path)
    lows = []
    for ax in drawings[0].figure.axes:
        values = np.concatenate([np.asarray(line.get_ydata()) for line in ax.lines if line.get_label() in COLOURS])
        lows.append(values.min())
        assert ax.get_ylim()[0] < values.min()
        assert ax.get_ylim()[1] > values.max()
    assert set(lows) == {-80.0}


def test_regrets_below_0_have_no_ratio_and_small_differences_no_strong_colour(results: Results, tmp_path: Path) -> None:
    named = frames.readable(results.rows)
    regrets = {"wrapper, Tsallis FTRL": 2.0, "wrapper, Exp3": -0.5, "uniform play": 100.0}
    rows = results.rows.with_columns(named["who"].replace_strict(regrets, return_dtype=pl.Float64).alias("regret"))
    page = write_report(study(report={"figures": ["ratios"]}), Results(rows, results.times, {}, []), tmp_path)
    [line] = re.findall(r"<th scope=.row.>wrapper, Exp3</th>(.*?)</tr>", page.read_text(encoding="utf-8"))[:1]
    entries = re.findall(r"<td[^>]*rgba\([\d,]*,([\d.]+)\)[^>]*>(.*?)</td>", line)
    assert entries[0] == ("0.60", "≤ 0")
    assert all(0.0 < float(weight) < 0.2 for weight, _ in entries[1:])


def test_worst_row_is_the_greatest_regret(results: Results) -> None:
    finals = frames.finals(frames.readable(results.rows))
    worst = frames.worst(frames.readable(results.rows))
    # Of 48 cells, the worse of two gaps each.
    assert worst.height == 24
    for row in worst.iter_rows(named=True):
        same = finals.filter(*(pl.col(name) == row[name] for name in ("who", *frames.SIZES)))
        assert same.height == 2
        assert row["regret"] == max(same["regret"])


def test_names_show_what_differs(results: Results) -> None:
    named = frames.readable(results.rows)
    assert set(named["who"]) == {"wrapper, Tsallis FTRL", "wrapper, Exp3", "uniform play"}
    assert set(named["where"]) == {"random splits, gap 0.4", "random splits, gap 0.1"}
    assert set(frames.readable(results.rows, apart=("gap",))["where"]) == {"random splits"}
    one = frames.readable(results.rows.filter(pl.col("instance_params") == '{"gap":0.4}'))
    assert set(one["where"]) == {"random splits"}
    assert frames.reference(named) == "wrapper, Tsallis FTRL"


def test_looks_are_stable_and_run_out() -> None:
    many = looks([str(k) for k in range(10)], first="9")
    assert many["9"].colour == COLOURS["default player"]
    assert len({look.colour for look in many.values() if look.front}) == MOST
    assert [name for name, look in many.items() if not look.front] == ["7", "8"]


def test_a_known_player_has_one_colour_in_all_reports() -> None:
    labels = [registry.find(name).label(settings) for name, settings in registry.COMPARED]
    assert set(COLOURS) == set(labels)
    assert len(set(COLOURS.values())) == len(labels)
    alone = {name: looks([name])[name] for name in labels}
    for k in range(len(labels)):
        # Beside other players, and beside names that are not in the catalogue.
        several = looks([*labels[k : k + 5], "mine", "yours"])
        assert all(several[name] == alone[name] for name in labels[k : k + 5])
        assert len({look.colour for look in several.values()}) == len(several)


def test_page_parts() -> None:
    page = Page("t")
    page.table(["a", "b"], [["<x>", Shaded("1", -2.0)]], caption="c", folded="open")
    assert "&lt;x&gt;" in page.render()
    assert 'style="background:rgba(73,158,200,0.60)"' in page.render()
    with pytest.raises(InvalidArgument, match="rows must have 2 entries, but got 1"):
        page.table(["a", "b"], [["x"]])
    page.section("One")
    with pytest.raises(InvalidArgument, match="heading must be new on the page, but 'One' is there already"):
        page.section("One")
    assert (large(999), large(2.5e6)) == ("999", "2.5 million")
