"""A torn write-ahead log, and damaged files: rounds may be gone, none is changed, none goes unnoticed.

SQLite takes a torn log for a shorter one: what is left is a clean beginning, and acknowledged rounds vanish
without an error. Whoever kept an answer sees it by the round's number (`lost`), and what is left still
verifies. Damage inside what is kept breaks the hash chain, the rows or the file, and `verify` or the
database says so.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.faults.audit import gaps, rows_against
from tests.service.faults.crowd import ARMS
from tests.service.faults.harness import SOAK
from tests.service.faults.ledger import Ledger

from aftereffect.core.errors import AftereffectError
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.store import Store

ROUNDS = 300
FLIPS = 200 if SOAK else 24


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'store.db'}"


def rows_of(store: Store, experiment: str) -> list[dict[str, Any]]:
    """Read all round rows."""
    items: list[dict[str, Any]] = []
    after: Any = 0
    while after is not None:
        page = store.rounds(experiment, after=after, limit=1000)
        items, after = items + page["items"], page["next"]
    return items


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ledger, str]:
    """A folder with a store as a killed server leaves it, all in the log; its ledger; the experiment."""
    live, left = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("left")
    store = Store.open(url(live))
    ledger = Ledger()
    rng = np.random.default_rng(8)
    experiment = store.create({"name": "torn", "arms": ARMS, "high": 1.0, "max_delay": 1, "seed": 1}).id
    ledger.created(experiment)
    for _ in range(ROUNDS):
        key = ledger.asked(experiment, store.perform(experiment, Ask()), ledger.closed(experiment))
        total = float(rng.random())
        ledger.sending(key, total)
        store.perform(experiment, Tell(key.round, total))
        ledger.told(key, total)
    for file in ("store.db", "store.db-wal"):
        shutil.copyfile(live / file, left / file)
    store.close()
    return left, ledger, experiment


def copied(played: tuple[Path, Ledger, str], folder: Path) -> Path:
    """Copy the store, without what belongs to a running process; return its log."""
    for file in ("store.db", "store.db-wal"):
        shutil.copyfile(played[0] / file, folder / file)
    return folder / "store.db-wal"


def test_the_whole_log_gives_everything_back(played: tuple[Path, Ledger, str], tmp_path: Path) -> None:
    _, ledger, experiment = played
    copied(played, tmp_path)
    store = Store.open(url(tmp_path))
    assert rows_against(ledger, experiment, rows_of(store, experiment)) == []
    assert all(result.ok for result in store.verify(experiment))
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_log_leaves_a_clean_beginning_and_the_loss_is_seen(
    seed: int, played: tuple[Path, Ledger, str], tmp_path: Path
) -> None:
    _, ledger, experiment = played
    log = copied(played, tmp_path)
    rng = np.random.default_rng(seed)
    size = log.stat().st_size
    # Torn anywhere in its second half; or two pages never written; so that the experiment itself is there.
    place = int(rng.integers(size // 2, size))
    with log.open("r+b") as file:
        if seed % 2:
            file.truncate(place)
        else:
            file.seek(place)
            file.write(bytes(min(2 * 8192, size - place)))
    store = Store.open(url(tmp_path))
    rows = rows_of(store, experiment)
    last = store.experiment(experiment).round
    findings = rows_against(ledger, experiment, rows)
    assert 0 < last < ROUNDS
    assert gaps(1, rows, last) == []
    # Every round that is gone is named, and no other kind of harm was done.
    assert {finding.partition(":")[0] for finding in findings} == {"lost"}
    assert sum("no row" in finding for finding in findings) == ROUNDS - last
    assert all(result.ok for result in store.verify(experiment))
    # A client that kept its last answer sees it at once.
    before = len(ledger.problems)
    ledger.asked(experiment, store.perform(experiment, Ask()), ledger.closed(experiment))
    assert [problem.partition(":")[0] for problem in ledger.problems[before:]] == ["lost"]
    store.close()


def seen(folder: Path, experiment: str) -> dict[str, Any] | str:
    """Return all that people are shown of an experiment, or in words that damage was noticed."""
    try:
        store = Store.open(url(folder))
    except AftereffectError as refused:
        return str(refused)
    try:
        findings = [result for result in store.verify() if not result.ok]
        if findings:
            return str(findings)
        events = store.events(experiment, after=0, limit=1000)
        return {"view": store.experiment(experiment), "rows": rows_of(store, experiment), "events": events}
    except AftereffectError as refused:
        return str(refused)
    finally:
        store.close()


def test_no_damage_to_the_file_goes_unnoticed(played: tuple[Path, Ledger, str], tmp_path: Path) -> None:
    _, _, experiment = played
    whole = tmp_path / "whole"
    whole.mkdir()
    copied(played, whole)
    # Opened and closed once: everything is in the file then, and nothing in a log.
    right = seen(whole, experiment)
    assert isinstance(right, dict)
    content = (whole / "store.db").read_bytes()
    noticed = 0
    rng = np.random.default_rng(9)
    for flip in range(FLIPS):
        folder = tmp_path / str(flip)
        folder.mkdir()
        damaged = bytearray(content)
        damaged[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        (folder / "store.db").write_bytes(damaged)
        found = seen(folder, experiment)
        noticed += isinstance(found, str)
        assert isinstance(found, str) or found == right
        shutil.rmtree(folder)
    # Most of the file is rows and events; a flip in free space changes nothing that anybody reads.
    assert noticed > FLIPS // 3
