"""The database without a server: who has the file, waiting for it, damage found, backups, the demonstration."""

import datetime
import os
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.service.server import command, server

from aftereffect.service import local
from aftereffect.service.client import Client
from aftereffect.service.demo import CORRECTED_DAY, EFFECTS, MOST, NAME, REGIONS, World, ensure
from aftereffect.service.errors import Refused
from aftereffect.service.local import Local, open_local
from aftereffect.service.store.sqlite_file import holder, holder_path
from aftereffect.service.store.store import Store

SETTINGS = {"name": "mailings", "arms": ["letter", "email"], "high": 50.0, "max_delay": 2, "seed": 7}
TODAY = datetime.date(2026, 3, 1)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


def played(store: str, rounds: int = 9) -> str:
    with Local.open(store) as local:
        made = local.create(**SETTINGS)
        for day in range(1, rounds + 1):
            local.ask(made.id)
            local.tell(made.id, day, float(day))
    return made.id


def test_another_process_is_waited_for(store: str) -> None:
    first = Store.open(store)
    timer = threading.Timer(0.5, first.close)
    begun = time.monotonic()
    timer.start()
    with Local.open(store, wait=20.0) as second:
        assert time.monotonic() - begun >= 0.4
        assert second.experiments().items == []
    timer.join()


def test_whoever_waits_for_long_is_told_for_whom(store: str, monkeypatch, caplog) -> None:
    monkeypatch.setattr("aftereffect.service.store.sqlite_file.NOTICE_S", 0.2)
    with Store.open(store):
        with pytest.raises(Refused, match="store is in use by process") as caught:
            open_local(store, wait=0.1)
        assert (caught.value.code, caplog.text) == ("busy", "")
        with pytest.raises(Refused):
            open_local(store, wait=0.6)
    (told,) = caplog.messages
    assert told == f"store is in use by process {os.getpid()}; waiting up to 0.6 s"


def test_a_server_that_comes_while_waiting_is_spoken_to(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the file gives no address when looked at, and one when the wait is over."""
    first = Store.open(store)

    seen: list[dict[str, Any] | None] = []

    def look(database: Path) -> dict[str, Any] | None:
        seen.append(holder(database))
        holder_path(database).write_text('{"pid": 1, "address": "http://127.0.0.1:9"}', encoding="utf-8")
        return seen[-1]

    monkeypatch.setattr("aftereffect.service.store.sqlite_file.holder", look)
    found = open_local(store, wait=0.1)
    assert seen[0] == {"pid": os.getpid(), "address": None}
    assert isinstance(found, Client)
    assert found.url == "http://127.0.0.1:9"
    found.close()
    first.close()


def test_verify_finds_what_was_changed_behind_its_back(store: str) -> None:
    experiment = played(store)
    assert command("verify", "--store", store).code == 0
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE rounds SET total = total + 1 WHERE round = 4")
    connection.close()
    done = command("verify", "--store", store)
    assert done.code == 6
    assert done.out.startswith(f"{experiment}: CORRUPT: ")
    with server(store) as address:
        assert command("verify", "--store", address).code == 6


def test_a_log_whose_experiment_is_gone_is_found_through_a_server_too(store: str) -> None:
    gone, kept = played(store, 2), played(store, 3)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM checkpoints")
        connection.execute("DELETE FROM rounds WHERE experiment = 1")
        connection.execute("DELETE FROM experiments WHERE id = ?", (gone,))
    alone = command("verify", "--store", store)
    with server(store) as address:
        through = command("verify", "--store", address)
    assert (through.code, through.out, through.err) == (alone.code, alone.out, alone.err)
    assert alone.code == 6
    assert alone.out.splitlines() == [
        f"{kept}: ok, rounds: 3", "number 1: CORRUPT: the log has 4 events of an experiment that no longer exists"
    ]


def test_a_backup_taken_beside_a_server_is_a_store_itself(store: str, tmp_path: Path) -> None:
    experiment = played(store, 5)
    copy, other = str(tmp_path / "backup.db"), str(tmp_path / "other.db")
    with server(store) as address:
        assert command("backup", copy, "--store", store).code == 0
        assert command("ask", "--store", store).code == 0
        assert command("backup", copy, "--store", store).code == 4
        assert command("backup", copy, "--store", address).code == 2
    done = command("restore-backup", copy, "--store", other)
    assert (done.code, done.out) == (0, f"{experiment}: ok, rounds: 5\n")
    assert command("restore-backup", copy, "--store", other).code == 4
    assert command("restore-backup", str(tmp_path / "nothing.db"), "--store", other).code == 3
    with Local.open(other) as local:
        assert local.ask(experiment).round == 6


def test_a_command_waits_half_a_minute_for_a_server_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10.0 < (local.RETRIES + 1) * local.TIMEOUT <= 30.0
    monkeypatch.setattr(local, "TIMEOUT", 0.1)
    began = time.monotonic()
    # Connections are accepted by the system; nobody reads from them.
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        address = f"http://127.0.0.1:{stopped.getsockname()[1]}"
        with local.open_service(address) as service, pytest.raises(Refused, match="timed out"):
            service.experiments()
    assert time.monotonic() - began < 10.0


def test_the_demonstration_is_made_once_and_ends_today(store: str) -> None:
    days = CORRECTED_DAY + 10
    with Store.open(store) as opened:
        clock = opened.now
        made = ensure(opened, TODAY, days)
        assert ensure(opened, TODAY, days) == made
        assert opened.now is clock
        view = opened.experiment(made)
        assert (view.name, view.open_round, view.state) == (NAME, days + 1, "running")
        assert view.counts["amended"] == 1
        assert 0 < view.counts["missing"] < 40
        assert view.alarms == []
        rows = opened.rounds(made, after=str(days), limit=1000)["items"]
        assert [row["unit"] for row in rows] == list(REGIONS)
        assert {row["date"] for row in rows} == {TODAY.isoformat()}
        assert {row["status"] for row in rows} == {"open"}
        assert opened.verify(made)[0].ok


def test_the_demonstration_has_orders_that_arrive_late_and_are_within_its_range() -> None:
    """A region that changes from letters to emails still gets the letters' late orders: nothing is lost on the way."""
    world = World(seed=0)
    letters = [world.day(dict.fromkeys(REGIONS, "letter")) for _ in range(200)]
    emails = [world.day(dict.fromkeys(REGIONS, "email")) for _ in range(200)]
    seen = [total for day in letters[2:] for total in day.values() if total is not None]
    # 198 days of 4 regions, each with a standard deviation below 20: five standard errors are 3.6.
    assert abs(sum(seen) / len(seen) - EFFECTS["letter"][0]) < 3.6
    changed = [total for total in emails[0].values() if total is not None]
    assert min(changed) > 60.0
    assert max(total for day in (*letters, *emails) for total in day.values() if total is not None) <= 3 * MOST
