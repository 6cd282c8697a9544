"""kill -9 at random moments under 32 clients; and broken servers, which the same harness must catch."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.service.faults.harness import KILLS, everything_is_tried, kills, lists_are_through, long_lists, plain_load
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server


def words(found: list[str]) -> Counter[str]:
    """Count findings by their first word."""
    return Counter(finding.partition(":")[0] for finding in found)


def test_nothing_acknowledged_is_lost_doubled_or_changed_by_kills(tmp_path: Path) -> None:
    ledgers: list[Ledger] = []
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, forked=True)
    found = asyncio.run(kills(server, ledgers, KILLS, seed=1, wanted=everything_is_tried))
    print(f"{KILLS} kills, {sum(ledger.acknowledged for ledger in ledgers):,} acknowledged writes")
    assert found == []
    assert sum(len(ledger.totals) for ledger in ledgers) > 20 * KILLS
    assert all(everything_is_tried(ledger) for ledger in ledgers)
    assert "Traceback" not in server.log()


def test_lists_that_take_several_transactions_are_kept_item_by_item(tmp_path: Path) -> None:
    ledgers: list[Ledger] = []
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, forked=True)
    count = max(1, KILLS // 50)
    assert asyncio.run(kills(server, ledgers, count, seed=10, clients=long_lists, wanted=lists_are_through)) == []
    assert [lists_are_through(ledger) for ledger in ledgers] == [True] * len(ledgers)
    assert ledgers
    assert "Traceback" not in server.log()


def test_a_server_that_answers_before_it_commits_is_caught(tmp_path: Path) -> None:
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, variant="ack_before_commit", forked=True)
    found = asyncio.run(kills(server, [], 10, seed=2))
    assert words(found)["lost"] > 0


@pytest.mark.parametrize(("variant", "word"), [
    ("counted_twice", "invented"),
    ("forgets_keys", "doubled"),
    ("last_wins", "changed"),
    ("asks_anew", "invented"),
    ("forgets_arms", "changed"),
])
def test_a_server_that_knows_nothing_again_is_caught(variant: str, word: str, tmp_path: Path) -> None:
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, variant=variant, forked=True)
    found = asyncio.run(plain_load(server, Ledger(), seed=3, word=word))
    assert words(found)[word] > 0
