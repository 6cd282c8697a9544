"""Figure 1 and Definition 1: the rows below are copied from the paper or computed by hand."""

import pytest

from aftereffect.core.errors import InvalidArgument
from aftereffect.players.wrapper.coins import read_coins, round_kinds, text_diagram

DRAWN = """\
coins   1  0  1  0  0  0  0  1 |0  0  1  0  0  0  0  0  0  1 |0  0  0  0  1 |
rounds  D  S  S  S  S  S  S  SU|D  S  S  S  S  S  S  S  S  SU|D  S  S  S  SU|
needed           0  0  0  0  1 |               0  0  0  0  1 |0  0  0  0  1 |
summed                 +  +  + |                     +  +  + |      +  +  + |"""


def test_the_papers_example() -> None:
    assert text_diagram(read_coins("10100001001000000100001"), max_delay=2) == DRAWN


@pytest.mark.parametrize(("coins", "max_delay", "rounds"), [
    ("00001", 2, "D S S S SU"),  # t = 2d+1 is the first round that may update
    ("0001", 2, "D S S S"),  # t = 2d is not, though the coins that exist fit
    ("1001001", 1, "D S S SU D S SU"),
    ("0101", 1, "D S S S"),  # a one within the last 2d coins forbids it
    ("1111", 3, "D S S S"),
    ("1101", 0, "DU DU D SU"),  # d = 0: every one updates, also in a draw round
    ("0", 0, "D"),
])
def test_definition_1_by_hand(coins: str, max_delay: int, rounds: str) -> None:
    assert round_kinds(read_coins(coins), max_delay) == rounds.split()


def test_long_sequences_are_cut_into_lines() -> None:
    lines = text_diagram(read_coins("00100"), max_delay=1, rounds_per_line=3).split("\n")
    first = ["coins   0  0  1 |", "rounds  D  S  SU|", "needed  0  0  1 |", "summed     +  + |"]
    assert lines == [*first, "", "coins   0  0", "rounds  D  S", "needed", "summed"]


@pytest.mark.parametrize("text", ["", "2", "1012", "1 0", "true"])
def test_bad_coins_are_named(text: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        read_coins(text)
    assert str(error.value) == f"coins must be one or more of the digits 0 and 1, but got {text!r}"


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"^max_delay must be at least 0, but got -1$"):
        round_kinds([True], max_delay=-1)
