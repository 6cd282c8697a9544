"""Health: well only where what is written is kept."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from tests.service.calling import api, problem

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask
from aftereffect.service.store import writer
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}


@pytest.fixture
def at_once(monkeypatch):
    """Make a trial every time."""
    monkeypatch.setattr(writer, "HEALTH_S", 0.0)


def break_disk(store: Store) -> Callable[[], None]:
    """Let no commit come to its end; return what mends that."""

    def no_room(_: object) -> None:
        cause = sqlite3.OperationalError("database or disk is full")
        cause.sqlite_errorname = "SQLITE_FULL"
        raise OperationalError("COMMIT", None, cause)

    event.listen(store._database.writing, "commit", no_room)
    return lambda: event.remove(store._database.writing, "commit", no_room)


def test_a_store_that_can_only_be_read_is_not_well_until_it_can_be_written(store, at_once):
    identity = store.create(MAIL).id
    store.check_health()
    mend = break_disk(store)
    for _ in range(2):
        with pytest.raises(Refused, match="nothing was kept") as refused:
            store.check_health()
        assert refused.value.code == "full"
    assert store.experiment(identity).id == identity
    mend()
    store.check_health()
    assert store.perform(identity, Ask())["round"] == 1


def test_a_file_that_is_gone_is_not_well(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.create(MAIL)
        store.check_health()
        Path(tmp_path / "store.db-wal").unlink()
        with pytest.raises(Refused, match="removed or replaced"):
            store.check_health()


def test_a_trial_changes_nothing(store, at_once):
    identity = store.create(MAIL).id
    before = store.events(identity), store.experiments(), store.verify()
    for _ in range(3):
        store.check_health()
    assert (store.events(identity), store.experiments(), store.verify()) == before


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    standing = Clock()
    monkeypatch.setattr(writer, "time", standing)
    return standing


def ended(answer: Any) -> Future[list[Any]]:
    future: Future[list[Any]] = Future()
    future.set_result([answer])
    return future


def test_trials_are_few_and_a_real_write_saves_one(clock):
    tries, kept = [], [0.0]

    def submit():
        tries.append(clock.now)
        return ended({})

    checked = writer.Health(submit, lambda: kept[0])
    checked.check()
    clock.now += writer.HEALTH_S - 0.1
    checked.check()
    assert tries == [1000.0]
    clock.now += 0.1
    checked.check()
    assert tries == [1000.0, 1000.0 + writer.HEALTH_S]
    clock.now += writer.HEALTH_S
    kept[0] = clock.now - 0.5
    checked.check()
    assert len(tries) == 2
    clock.now += writer.HEALTH_S
    checked.check()
    assert len(tries) == 3


def test_a_failure_is_remembered_until_a_write_succeeds(clock):
    outcome, kept = [Refused("full", "no space left"), {}], [0.0]
    checked = writer.Health(lambda: ended(outcome.pop(0)), lambda: kept[0])
    for _ in range(2):
        with pytest.raises(Refused, match="no space left"):
            checked.check()
    clock.now += 1.0
    kept[0] = clock.now
    checked.check()
    clock.now += writer.HEALTH_S
    checked.check()
    assert outcome == []


def test_a_writer_that_hangs_is_noticed(clock, monkeypatch):
    monkeypatch.setattr(writer, "TRIAL_S", 0.01)
    hanging: Future[list[Any]] = Future()
    checked = writer.Health(lambda: hanging, lambda: 0.0)
    # Who asks is told how the last trial ended, and waits for the new one only for a moment.
    for _ in range(3):
        checked.check()
    clock.now += writer.PATIENCE_S + 1.0
    with pytest.raises(Refused, match="not finished a write for 61 s"):
        checked.check()
    hanging.set_result([{}])
    checked.check()


@pytest.mark.parametrize("host", ["10.1.2.3:8000", "shop.example", "evil.example", ""])
@pytest.mark.parametrize("bound", ["0.0.0.0", "127.0.0.1"])
def test_healthz_answers_to_any_name_and_says_nothing_else(tmp_path, at_once, caplog, bound, host):
    with api(tmp_path, host=bound, allowed_hosts="shop.example") as call:
        sent = {"host": host}
        well = call("GET", "/healthz", headers=sent)
        assert (well.status_code, well.json()) == (200, {"status": "ok"})
        break_disk(call.store)
        ill = call("GET", "/healthz", headers=sent)
        assert "the store must accept reads and writes" in problem(ill, 503, "busy")
        assert "disk" not in ill.text
        assert "database or disk is full" in caplog.text
        for header in ({"origin": "https://other.example"}, {"sec-fetch-site": "cross-site"}):
            problem(call("POST", "/healthz", headers={**sent, **header}), 403, "forbidden")
