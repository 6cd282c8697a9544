"""Figure 1 and Definition 1: the rows below are copied from the paper or computed by hand."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from aftereffect.core.errors import InvalidArgument
from aftereffect.players.figure1 import read_coins, round_kinds, svg_diagram, text_diagram

COINS = list("10100001001000000100001")
ROUNDS = [
    *("D", "S", "S", "S", "S", "S", "S", "SU"),
    *("D", "S", "S", "S", "S", "S", "S", "S", "S", "SU"),
    *("D", "S", "S", "S", "SU"),
]

DRAWN = """\
coins   1  0  1  0  0  0  0  1 |0  0  1  0  0  0  0  0  0  1 |0  0  0  0  1 |
rounds  D  S  S  S  S  S  S  SU|D  S  S  S  S  S  S  S  S  SU|D  S  S  S  SU|
needed           0  0  0  0  1 |               0  0  0  0  1 |0  0  0  0  1 |
summed                 +  +  + |                     +  +  + |      +  +  + |"""


def paper_coins() -> list[bool]:
    return [coin == "1" for coin in COINS]


def test_the_papers_example() -> None:
    assert round_kinds(paper_coins(), max_delay=2) == ROUNDS


def test_the_papers_example_as_text() -> None:
    assert text_diagram(paper_coins(), max_delay=2) == DRAWN


@pytest.mark.parametrize(
    ("coins", "max_delay", "rounds"),
    [
        ("00001", 2, "D S S S SU"),  # t = 2d+1 is the first round that may update
        ("0001", 2, "D S S S"),  # t = 2d is not, though the coins that exist fit
        ("1001001", 1, "D S S SU D S SU"),
        ("0101", 1, "D S S S"),  # a one within the last 2d coins forbids it
        ("1111", 3, "D S S S"),
        ("1101", 0, "DU DU D SU"),  # d = 0: every one updates, also in a draw round
        ("0", 0, "D"),
    ],
)
def test_definition_1_by_hand(coins: str, max_delay: int, rounds: str) -> None:
    assert round_kinds(read_coins(coins), max_delay) == rounds.split()


def test_long_sequences_are_cut_into_lines() -> None:
    lines = text_diagram(read_coins("00100"), max_delay=1, rounds_per_line=3).split("\n")
    first = ["coins   0  0  1 |", "rounds  D  S  SU|", "needed  0  0  1 |", "summed     +  + |"]
    assert lines == [*first, "", "coins   0  0", "rounds  D  S", "needed", "summed"]


def drawing(coins: str, max_delay: int) -> ET.Element:
    return ET.fromstring(svg_diagram(read_coins(coins), max_delay))


def found(root: ET.Element, kind: str) -> list[ET.Element]:
    return [part for part in root.iter() if part.get("class") == kind]


def test_the_drawing_says_what_the_paper_says() -> None:
    root = drawing("".join(COINS), 2)
    words = [part.text for part in root.iter() if part.tag.endswith("text") and not part.get("class")]
    assert words[::2] == COINS
    assert words[1::2] == ROUNDS
    # Blocks of 8, 10 and 5 rounds; each shape covers 2d = 4 columns of coins beside the update round's own.
    widths = [int(part.attrib["width"]) for part in found(root, "block")]
    column = widths[0] // 8
    assert widths == [8 * column, 10 * column, 5 * column]
    shapes = [part.attrib["d"] for part in found(root, "needed")]
    assert len(shapes) == 3
    for shape in shapes:
        assert [int(step) for step in re.findall(r"h(-\d+)", shape)] == [-column, -4 * column]


def test_the_readmes_picture_is_the_one_drawn() -> None:
    picture = Path(__file__).parents[2] / "docs" / "img" / "figure1.svg"
    assert picture.read_text(encoding="utf-8") == svg_diagram(paper_coins(), max_delay=2)


def test_the_drawing_leaves_the_last_block_open() -> None:
    blocks = found(drawing("00100", 1), "block")
    assert [part.tag.rpartition("}")[2] for part in blocks] == ["rect", "path"]


@pytest.mark.parametrize("text", ["", "2", "1012", "1 0", "true"])
def test_bad_coins_are_named(text: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        read_coins(text)
    assert str(error.value) == f"coins must be one or more of the digits 0 and 1, but got {text!r}"


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^max_delay must be at least 0, but got -1$"):
        round_kinds([True], max_delay=-1)
