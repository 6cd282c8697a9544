"""The store's parts: the hash chain, the lock on a file, addresses, cursors, statements of many rows."""

import hashlib
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from aftereffect.service.errors import Refused
from aftereffect.service.store import chain, paging, places, schema, statements
from aftereffect.service.store.locking import FileLock, holder
from aftereffect.service.store.store import Store

HOLD = """
import sys
from pathlib import Path
from aftereffect.service.store.locking import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.take(5.0, sys.argv[2] or None)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_link_is_the_sha256_of_the_hash_before_and_of_the_canonical_event():
    body = {"total": 0.1, "arm": "Zürich"}
    event = {"at": "2026-01-01T00:00:00Z", "body": body, "kind": "tell", "round": 3, "seq": 5, "unit": 'a"b'}
    text = json.dumps(event, sort_keys=True, separators=(",", ":"))
    found = chain.link("ab", 5, "tell", 3, 'a"b', chain.canonical(body), "2026-01-01T00:00:00Z")
    assert found == hashlib.sha256(b"ab" + text.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [
        ("x", 5, "tell", 3, "u", "{}", "now"),
        ("p", 6, "tell", 3, "u", "{}", "now"),
        ("p", 5, "ask", 3, "u", "{}", "now"),
        ("p", 5, "tell", None, "u", "{}", "now"),
        ("p", 5, "tell", 3, None, "{}", "now"),
        ("p", 5, "tell", 3, "u", '{"a":1}', "now"),
        ("p", 5, "tell", 3, "u", "{}", "then"),
    ],
)
def test_every_part_of_an_event_is_in_its_hash(changed):
    assert chain.link(*changed) != chain.link("p", 5, "tell", 3, "u", "{}", "now")


def test_canonical_text_has_no_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        chain.canonical({"total": float("nan")})


def test_a_second_store_on_a_file_waits_and_then_says_who_has_it(sqlite_url):
    with Store.open(sqlite_url, address="http://127.0.0.1:8321"):
        start = time.monotonic()
        with pytest.raises(Refused, match=r"server at http://127\.0\.0\.1:8321") as refused:
            Store.open(sqlite_url, wait=0.3)
        assert time.monotonic() - start >= 0.3
        assert refused.value.code == "busy"
        assert refused.value.extra == {"address": "http://127.0.0.1:8321", "pid": os.getpid()}
        assert refused.value.status == 503
    Store.open(sqlite_url, wait=0.0).close()


def holding(database: Path, address: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock of a database until its standard input ends."""
    command = [sys.executable, "-c", HOLD, str(database), address]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_second_process_waits_for_the_first_to_end(tmp_path):
    database = tmp_path / "store.db"
    with holding(database, "") as other:
        assert other.stdout.readline() == "held\n"
        assert holder(database) == {"pid": other.pid, "address": None}
        lock = FileLock(database)
        with pytest.raises(Refused, match=f"in use by process {other.pid}"):
            lock.take(0.0)
        ending = threading.Timer(0.3, other.stdin.close)
        ending.start()
        lock.take(60.0)
        ending.join()
        assert other.wait() == 0
        assert holder(database) == {"pid": os.getpid(), "address": None}
        lock.release()
    assert holder(database) is None


def test_a_killed_holder_leaves_no_lock(tmp_path):
    database = tmp_path / "store.db"
    with holding(database, "http://here") as other:
        other.stdout.readline()
        found = holder(database)
        assert found is not None
        assert found["address"] == "http://here"
        other.kill()
    assert holder(database) is None
    lock = FileLock(database)
    lock.take(0.0)
    lock.release()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="folder that can be written to"):
        Store.open(f"sqlite:///{tmp_path}/nowhere/store.db")


@pytest.mark.parametrize("address", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?mode=ro", "://"])
def test_addresses_that_are_no_store_are_refused(address):
    with pytest.raises(Refused, match="store must be"):
        places.checked_url(address)


def test_an_address_that_is_refused_shows_no_password():
    with pytest.raises(Refused) as refused:
        places.checked_url("mysql://me:hunter2@x/y")
    assert "hunter2" not in refused.value.detail


def test_sqlite_syncs_every_commit_and_only_the_writer_moves_the_log(sqlite_url):
    place = places.Place(places.checked_url(sqlite_url))
    for engine in (place.writing, place.reading):
        with engine.connect() as connection:
            names = ("journal_mode", "synchronous", "wal_autocheckpoint")
            found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]
            assert found == ["wal", 2, 0]
    place.close()


def test_the_reading_connections_cannot_write(sqlite_url):
    with (
        Store.open(sqlite_url) as store,
        store._place.reading.connect() as connection,
        pytest.raises(OperationalError, match="readonly"),
    ):
        connection.exec_driver_sql("DELETE FROM experiments")


@pytest.mark.parametrize("count", [0, 1, 5, 64, 341, 1500])
def test_statements_take_any_number_of_rows(sqlite_url, count):
    with Store.open(sqlite_url) as store, store._place.writing.begin() as connection:
        rows = [(i + 1, f"id{i}", "n", "", 0, "", "now", "{}") for i in range(count)]
        statements.create.run(connection, rows)
        statements.move_heads.run(connection, [("running", i, f"h{i}", i + 1) for i in range(count)])
        found = connection.execute(select(schema.experiments).order_by(schema.experiments.c.number)).all()
        assert [(row.id, row.seq, row.head) for row in found] == [(f"id{i}", i, f"h{i}") for i in range(count)]


@pytest.mark.parametrize("after", ["x", "1.x", "-1", "1.", ".1", "1.2.3", "²", True, 2**63, "1.9999999999", 1.5])
def test_cursors_that_are_none_are_refused(after):
    if after in ("1.", 1.5):
        # An empty unit reads as the whole round, a float as ROUND.UNIT.
        assert paging.read_cursor(after)[0] == 1
        return
    with pytest.raises(Refused, match="after must be ROUND or ROUND"):
        paging.read_cursor(after)


def _open_and_close(url: str) -> None:
    Store.open(url, wait=30.0).close()


def test_eight_processes_may_open_a_new_store_together(store_url):
    context = multiprocessing.get_context("fork")
    crowd = [context.Process(target=_open_and_close, args=(store_url,)) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert [one.exitcode for one in crowd] == [0] * 8
    with Store.open(store_url) as store:
        assert store.experiments() == {"items": [], "next": None}


def test_a_file_that_is_no_database_is_named_as_such(tmp_path: Path):
    path = tmp_path / "store.db"
    path.write_bytes(b"this is a letter to my aunt" * 100)
    with pytest.raises(Refused, match="not a database") as refused:
        Store.open(f"sqlite:///{path}")
    assert refused.value.code == "corrupt"
    # The lock has been let go.
    path.unlink()
    Store.open(f"sqlite:///{path}", wait=0.0).close()


def test_the_log_is_moved_into_the_file_when_there_is_time(sqlite_url, monkeypatch):
    monkeypatch.setattr("aftereffect.service.store.sweeping.LOG_ROWS_IDLE", 1)
    with Store.open(sqlite_url) as store:
        for i in range(3):
            store.create({"name": f"n{i}", "arms": ["a", "b"], "max_delay": 0})
        store.check_health()
        # Only what has been moved is there for one who does not read the log.
        file = sqlite3.connect(f"file:{store._place.file}?immutable=1", uri=True)
        moved = file.execute("SELECT count(*) FROM experiments").fetchone()[0]
        file.close()
        assert moved >= 2
