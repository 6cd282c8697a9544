"""Health: well only where what is written is kept."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from tests.service.calling import api, problem

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask
from aftereffect.service.store import store as store_module
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}


@pytest.fixture
def at_once(monkeypatch):
    """Make a trial every time."""
    monkeypatch.setattr(store_module, "HEALTH_S", 0.0)


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


def test_trials_are_few_and_a_real_write_saves_one(store, monkeypatch):
    submit, jobs = store._writer.submit, []
    monkeypatch.setattr(store._writer, "submit", lambda job: jobs.append(job) or submit(job))
    store.create(MAIL)
    for _ in range(3):
        store.check_health()
    assert len(jobs) == 1
    # As if the last commit had been so long ago.
    store._database.kept_at -= store_module.HEALTH_S
    for _ in range(3):
        store.check_health()
    assert len(jobs) == 2


def test_a_writer_that_hangs_is_noticed(store, at_once, monkeypatch):
    monkeypatch.setattr(store_module, "TRIAL_S", 0.05)
    going = threading.Event()
    event.listen(store._database.writing, "commit", lambda _: going.wait(60))
    with pytest.raises(Refused, match=r"not finished a write for 0\.05 s"):
        store.check_health()
    going.set()
    monkeypatch.setattr(store_module, "TRIAL_S", 60.0)
    store.check_health()


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
