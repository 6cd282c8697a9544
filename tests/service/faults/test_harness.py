"""Every rule of ledger and audit, on rows made by hand: wrong stores are named, the right one passes."""

from typing import Any

import pytest
from tests.service.faults.audit import events_against, gaps, made_against, rows_against
from tests.service.faults.ledger import Key, Ledger

ONE, TWO = Key("e", 1, "1"), Key("e", 2, "1")


def row(number: int, arm: str, total: float | None, status: str) -> dict[str, Any]:
    return {"round": number, "unit": "1", "arm": arm, "total": total, "status": status}


def ledger_of_two_rounds() -> Ledger:
    """Round 1 asked and told 0.5; round 2 asked, and 0.25 sent without an answer."""
    ledger = Ledger()
    ledger.created("e")
    ledger.asked("e", {"round": 1, "unit": "1", "arm": "red"}, closed=0)
    ledger.sending(ONE, 0.5)
    ledger.told(ONE, 0.5)
    ledger.asked("e", {"round": 2, "unit": "1", "arm": "blue"}, closed=1)
    ledger.sending(TWO, 0.25)
    return ledger


FIRST, OPEN = row(1, "red", 0.5, "reported"), row(2, "blue", None, "open")


@pytest.mark.parametrize("second", [OPEN, row(2, "blue", 0.25, "reported")])
def test_a_right_store_passes_with_the_doubtful_total_or_without(second: dict[str, Any]) -> None:
    assert rows_against(ledger_of_two_rounds(), "e", [FIRST, second]) == []
    assert gaps(1, [FIRST, second], 2) == []


@pytest.mark.parametrize(("rows", "word"), [
    ([FIRST], "lost"),
    ([row(1, "red", None, "open"), OPEN], "lost"),
    ([row(1, "blue", 0.5, "reported"), OPEN], "changed"),
    ([row(1, "red", 0.7, "reported"), OPEN], "changed"),
    ([row(1, "red", None, "missing"), OPEN], "changed"),
    ([row(1, "red", 0.5, "missing"), OPEN], "changed"),
    ([FIRST, FIRST, OPEN], "doubled"),
    ([FIRST, row(2, "blue", 0.5, "reported")], "invented"),
    ([FIRST, OPEN, row(3, "red", 0.25, "reported")], "invented"),
])
def test_a_wrong_store_is_named(rows: list[dict[str, Any]], word: str) -> None:
    assert word in {finding.partition(":")[0] for finding in rows_against(ledger_of_two_rounds(), "e", rows)}


@pytest.mark.parametrize(("rows", "units", "last"), [
    ([FIRST, row(3, "red", None, "open")], 1, 2),
    ([FIRST, OPEN], 1, 3),
    ([FIRST, OPEN], 2, 2),
    ([row(1, "red", None, "open"), OPEN], 1, 2),
])
def test_gaps_are_named(rows: list[dict[str, Any]], units: int, last: int) -> None:
    assert gaps(units, rows, last) != []


def events(*wanted: tuple[int, str, int]) -> list[dict[str, Any]]:
    return [{"seq": seq, "kind": kind, "round": number, "unit": "1"} for seq, kind, number in wanted]


def test_events_are_held_against_rows() -> None:
    right = events((1, "ask", 1), (2, "tell", 1), (3, "ask", 2))
    assert events_against(right, [FIRST, OPEN]) == []
    for wrong in (
        events((1, "ask", 1), (2, "tell", 1), (4, "ask", 2)),
        events((1, "ask", 1), (2, "tell", 1), (3, "tell", 1), (4, "ask", 2)),
        events((1, "ask", 1), (2, "tell", 1)),
        events((1, "ask", 1), (2, "ask", 2)),
    ):
        assert events_against(wrong, [FIRST, OPEN]) != []


def test_contradictions_are_seen_as_they_come() -> None:
    ledger = ledger_of_two_rounds()
    ledger.told(ONE, 0.5)
    ledger.sending(ONE, 0.75)
    ledger.conflicted(ONE, 0.75)
    assert ledger.problems == []
    ledger.told(ONE, 0.75)
    ledger.conflicted(TWO, 0.25)
    ledger.asked("e", {"round": 1, "unit": "1", "arm": "red"}, closed=1)
    ledger.asked("e", {"round": 2, "unit": "1", "arm": "red"}, closed=1)
    assert [problem.partition(":")[0] for problem in ledger.problems] == ["changed", "refused", "lost", "changed"]


def test_what_was_read_may_not_change_later() -> None:
    ledger = ledger_of_two_rounds()
    assert rows_against(ledger, "e", [FIRST, row(2, "blue", 0.25, "reported")]) == []
    assert ledger.closed("e") == 2
    assert rows_against(ledger, "e", [FIRST, OPEN]) == ["lost: " + f"{TWO} was told 0.25, and is open"]


def test_what_was_made_for_a_key_is_stored_once() -> None:
    ledger = Ledger()
    ledger.made |= {"a": None, "b": None}
    ledger.make("a", "1")
    assert made_against(ledger, [{"name": "a", "id": "1"}]) == []
    assert made_against(ledger, [{"name": "a", "id": "1"}, {"name": "b", "id": "2"}]) == []
    assert [each.partition(":")[0] for each in made_against(ledger, [{"name": "a", "id": "3"}])] == ["lost"]
    twice = [{"name": "b", "id": "2"}, {"name": "b", "id": "3"}, {"name": "a", "id": "1"}]
    assert [each.partition(":")[0] for each in made_against(ledger, twice)] == ["doubled"]
    ledger.make("a", "1")
    assert ledger.problems == []
    ledger.make("a", "2")
    assert [problem.partition(":")[0] for problem in ledger.problems] == ["doubled"]
