"""`aftereffect study new`, and docs/guides/study-files.md: it lists every key, instance, player, section and column."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftereffect.players.registry import COMPARED, PLAYERS
from aftereffect.studies.cells import SETTINGS
from aftereffect.studies.cli import study as command
from aftereffect.studies.measure import ROWS
from aftereffect.studies.report import frames
from aftereffect.studies.report.sections import SECTIONS, planned
from aftereffect.studies.study import INSTANCE_KEYS, KEYS, PLAYER_KEYS, QUICK, Study

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "study-files.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMON = {"out_of_range"}


def printed() -> str:
    done = CliRunner().invoke(command, ["new"])
    assert done.exit_code == 0
    return done.output


def row_of(name: str) -> str:
    """Return the row of the tables of instances and players whose first column has this name."""
    tables = TEXT[TEXT.index("## Instances") : TEXT.index("## The report")]
    found = [line for line in tables.splitlines() if re.match(rf"\|[^|]*`{name}`[^|]*\|", line)]
    assert len(found) == 1, name
    return found[0]


def test_a_new_study_file_has_every_key_and_can_be_run() -> None:
    table = tomllib.loads(printed())
    assert set(table) == KEYS
    assert {key for one in table["instance"] for key in one} >= set(INSTANCE_KEYS)
    assert {key for one in table["player"] for key in one} >= set(PLAYER_KEYS)
    assert set(table["report"]) == {"figures", "against", "reading"}
    assert len(planned(Study.from_table(table))) == 3
    assert 0 < len(Study.from_table(table, quick=True).cells()) < len(Study.from_table(table).cells())


def test_the_page_shows_the_new_file() -> None:
    assert f"```toml\n{printed()}```\n" in TEXT


def test_the_page_lists_every_key() -> None:
    keys = TEXT[TEXT.index("## The keys") : TEXT.index("## Instances")]
    for key in {*KEYS, *QUICK, *INSTANCE_KEYS, *PLAYER_KEYS}:
        assert re.search(rf"`\[*{key}\]*`", keys), key


@pytest.mark.parametrize("name", SETTINGS)
def test_the_page_lists_every_setting_of_an_instance(name: str) -> None:
    assert {f"`{setting}`" for setting in SETTINGS[name]} <= set(re.findall(r"`\w+`", row_of(name).rpartition("| ")[2]))


@pytest.mark.parametrize("name", PLAYERS)
def test_the_page_lists_every_setting_of_a_player(name: str) -> None:
    settings = PLAYERS[name].settings.keys() - COMMON
    assert {f"`{setting}`" for setting in settings} == set(re.findall(r"`\w+`", row_of(name).rpartition("| ")[2]))


def test_the_page_lists_the_names_of_instances_and_players_in_reports() -> None:
    rows = [f"| `{name}` | {label} |" for name, label in frames.PLACES.items()]
    for name, settings in COMPARED:
        given = [f"`{name}`", *(f'`{key} = "{value}"`' for key, value in settings.items())]
        rows.append(f"| {', '.join(given)} | {PLAYERS[name].label(settings)} |")
    assert frames.PLACES.keys() == SETTINGS.keys() | {"campaigns", "pieces"}
    assert set(rows) <= set(TEXT.splitlines())


def test_the_page_lists_every_section_and_column() -> None:
    for section in SECTIONS:
        assert f'`"{section}"`' in TEXT
    for column in set(ROWS) - {"q25", "q50", "q75"}:
        assert f"`{column}`" in TEXT[TEXT.index("## The rows") :], column
