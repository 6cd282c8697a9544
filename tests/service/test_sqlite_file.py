"""Files that change under an open store: nothing is acknowledged that nobody would find again."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.service.playing import play_in

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store import database, sqlite_file
from aftereffect.service.store.sqlite_file import SqliteFile, holder, holder_path
from aftereffect.service.store.store import Store
from aftereffect.service.store.writer import Job, trial

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path, _copy: Path | None = None) -> None:
    path.write_bytes(b"")


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    os.replace(copy, path)


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


@pytest.mark.parametrize("change", [removed, replaced, moved_away])
@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_what_goes_into_a_file_without_a_name_is_not_acknowledged(tmp_path, ending, change):
    file = tmp_path / "store.db"
    with Store.open(f"sqlite:///{file}") as store:
        identity = store.create(MAIL).id
        store.perform(identity, Ask())
        change(Path(f"{file}{ending}"))
        # Again and again: a new connection would be to another file.
        for _ in range(3):
            with pytest.raises(Refused, match="removed or replaced while it was open: nothing was kept") as refused:
                store.perform(identity, Tell(1, 0.5))
            assert refused.value.status == 503
            with pytest.raises(Refused, match="removed or replaced"):
                store.create_token("t", ["read"])
        if change is removed:
            assert not Path(f"{file}{ending}").exists()


@pytest.mark.parametrize(("change", "words"), [(removed, "removed or replaced"), (emptied, "was written over")])
def test_a_log_that_changes_during_the_commit_is_noticed_before_the_answer(tmp_path, monkeypatch, change, words):
    log = tmp_path / "store.db-wal"
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        identity = store.create(MAIL).id
        check = store._database.file.check

        def late(log_written=False):
            if change is emptied and log_written:
                emptied(log)
            check(log_written=log_written)
            if change is removed and not log_written:
                removed(log)

        monkeypatch.setattr(store._database.file, "check", late)
        with pytest.raises(Refused, match=rf"{words} .*: it is not known whether this was kept"):
            store.perform(identity, Ask())


def test_a_write_that_failed_does_not_count_as_a_file_that_vanished(tmp_path, monkeypatch):
    """Its connection is closed, and if it was the last one the companions go with it."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        identity = store.create(MAIL).id
        for engine in (store._database.reading, store._database.internal, store._database.writing):
            engine.dispose()
        assert not Path(tmp_path / "store.db-wal").exists()
        assert store.perform(identity, Ask())["round"] == 1
        assert store.perform(identity, Tell(1, 0.5))["status"] == "reported"


def checkpoint(store: Store) -> None:
    """Move the log into the file, in the writer's thread, which may be about to do so by itself."""
    job, moved = Job([("", trial)]), threading.Event()
    job.future.add_done_callback(lambda _: store._database.file.checkpoint(store._database.writing) or moved.set())
    store._writer.submit(job)
    assert moved.wait(60)


def copied_over(path: Path, copy: Path) -> None:
    shutil.copyfile(copy, path)


def cut(path: Path, _copy: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scratched(path: Path, _copy: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"?" * 4096)


def refuses(store: Store, identity: str) -> None:
    """See that nothing is acknowledged, not even what was once."""
    for command in (Ask(), Tell(1, 0.25), Ask()):
        with pytest.raises(Refused, match=r"was written over .* while it was open: nothing was kept"):
            store.perform(identity, command)
    with pytest.raises(Refused, match="was written over"):
        store.check_health()


@pytest.mark.parametrize("change", [emptied, copied_over, cut, scratched])
def test_a_store_that_is_written_over_in_its_place_acknowledges_nothing_more(tmp_path, change):
    file, backup = tmp_path / "store.db", tmp_path / "backup.db"
    with Store.open(f"sqlite:///{file}") as store:
        identity = store.create(MAIL).id
        store.backup(backup)
        play_in(store, identity, 199)
        checkpoint(store)
        change(file, backup)
        refuses(store, identity)


def test_a_copy_that_is_one_round_old_is_noticed(tmp_path):
    """It has the same inode, size and header as the file that it is copied over."""
    file, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with Store.open(f"sqlite:///{file}") as store:
        identity = store.create(MAIL).id
        play_in(store, identity, 39)
        checkpoint(store)
        shutil.copyfile(file, copy)
        play_in(store, identity, 1)
        checkpoint(store)
        assert file.read_bytes() != copy.read_bytes()
        assert (file.stat().st_size, file.read_bytes()[:100]) == (copy.stat().st_size, copy.read_bytes()[:100])
        copied_over(file, copy)
        refuses(store, identity)
    assert file.read_bytes() == copy.read_bytes()


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("change", [emptied, copied_over, cut, scratched])
def test_a_log_that_is_written_over_is_noticed_and_not_moved_into_the_file(tmp_path, change, asked):
    """What was moved before is there when the store is opened anew."""
    file, log, copy = tmp_path / "store.db", tmp_path / "store.db-wal", tmp_path / "copy"
    with Store.open(f"sqlite:///{file}") as store:
        identity = store.create(MAIL).id
        play_in(store, identity, 9)
        shutil.copyfile(log, copy)
        checkpoint(store)
        play_in(store, identity, 20)
        before = file.read_bytes()
        change(log, copy)
        after = log.read_bytes()
        if asked:
            refuses(store, identity)
    assert (file.read_bytes(), log.read_bytes()) == (before, after)
    with Store.open(f"sqlite:///{file}") as store:
        assert store.verify(identity)[0].ok
        assert 9 <= store.experiment(identity).round < 30


def test_what_only_looks_like_writing_over_is_none(tmp_path, monkeypatch):
    """Logs that are moved and cut, transactions larger than the cache, whoever reads the files or sets their mode."""
    small = [pragma for pragma in database.PRAGMAS if "size" not in pragma]
    monkeypatch.setattr(database, "PRAGMAS", ("page_size=8192", "cache_size=8", "journal_size_limit=65536", *small))
    monkeypatch.setattr(sqlite_file, "LOG_LIMIT", 65536)
    file, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    sizes = []
    with Store.open(f"sqlite:///{file}") as store:
        ids = [store.create(MAIL).id for _ in range(200)]
        for t in range(1, 10):
            assert {answer["round"] for answer in store.perform_many([(each, Ask()) for each in ids])} == {t}
            if t % 3 == 0:
                checkpoint(store)
            file.read_bytes()
            log.chmod(0o600)
            store.perform(ids[0], Tell(t, 0.5))
            sizes.append(log.stat().st_size)
            store.perform_many([(each, Tell(t, 0.5)) for each in ids])
            store.backup(tmp_path / f"{t}.db")
        store.check_health()
    assert min(sizes[2::3]) < 100_000 < max(sizes)
    assert not log.exists()


MOVING = "import sqlite3, sys\nlog = sqlite3.connect(sys.argv[1])\nlog.execute(sys.argv[2]).fetchall()\nlog.close()"


def moved_outside(file: Path, mode: str) -> None:
    subprocess.run([sys.executable, "-c", MOVING, str(file), f"PRAGMA wal_checkpoint({mode})"], check=True)


@pytest.mark.parametrize("mode", ["PASSIVE", "TRUNCATE"])
def test_a_log_that_another_program_moves_into_the_file_is_noticed_and_nothing_is_lost(tmp_path, mode):
    file = tmp_path / "store.db"
    with Store.open(f"sqlite:///{file}") as store:
        identity = store.create(MAIL).id
        play_in(store, identity, 20)
        moved_outside(file, mode)
        refuses(store, identity)
    with Store.open(f"sqlite:///{file}") as store:
        verdict = store.verify(identity)[0]
        assert (verdict.ok, verdict.rounds) == (True, 20)
        play_in(store, identity, 4)


def test_a_link_that_comes_to_point_elsewhere_is_not_followed(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("old")
    with Store.open(f"sqlite:///{tmp_path / 'new' / 'store.db'}"):
        pass
    with Store.open(f"sqlite:///{link / 'store.db'}") as store:
        link.unlink()
        link.symlink_to("new")
        identity = store.create(MAIL).id
        for engine in (store._database.reading, store._database.internal, store._database.writing):
            engine.dispose()
        assert store.perform(identity, Ask())["round"] == 1
        assert [one["id"] for one in store.experiments()["items"]] == [identity]


LOOKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM events").fetchone()[0])
connection.close()
"""


def test_somebody_who_looks_into_the_file_removes_nothing(sqlite_url):
    """Whoever closes a SQLite file last removes its log, so he must be able to see that he is not the last."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    log = Path(f"{file}-wal")
    with Store.open(sqlite_url) as store:
        mail = store.create(MAIL).id
        for t in range(1, 4):
            store.perform(mail, Ask())
            before = log.stat()
            looked = subprocess.run([sys.executable, "-c", LOOKING, str(file)], capture_output=True, check=True)
            assert int(looked.stdout) == 2 * t - 1
            assert (log.stat().st_ino, log.stat().st_size) == (before.st_ino, before.st_size)
            assert store.perform(mail, Tell(t, 0.5))["status"] == "reported"
        assert store.verify(mail)[0].ok


# The lock is the file's own: one process at a time, by whatever name it knows the file.

HOLD = """
import sys
import threading
import time
from pathlib import Path
from aftereffect.service.store.sqlite_file import SqliteFile
lock = SqliteFile(Path(sys.argv[1]))
lock.lock(5.0, sys.argv[2] or None)
print("held", flush=True)
sys.stdin.read()
"""


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
        lock = SqliteFile(database)
        with pytest.raises(Refused, match=f"in use by process {other.pid}"):
            lock.lock(0.0)
        ending = threading.Timer(0.3, other.stdin.close)
        ending.start()
        lock.lock(60.0)
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
        assert found["address"] == "http://here"
        other.kill()
    assert holder(database) is None
    lock = SqliteFile(database)
    lock.lock(0.0)
    lock.release()


def test_a_hard_link_is_the_same_store(tmp_path):
    database, link = tmp_path / "store.db", tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    with holding(database, "http://here") as other:
        assert other.stdout.readline() == "held\n"
        os.link(database, link)
        with pytest.raises(Refused, match="in use by another process"):
            Store.open(f"sqlite:///{link}", wait=0.0)
        assert holder(link) == {"pid": None, "address": None}
        other.kill()
    # The same within a process.
    with Store.open(f"sqlite:///{database}") as store:
        identity = store.create(MAIL).id
        for name in (database, link):
            with pytest.raises(Refused, match="in use by"):
                Store.open(f"sqlite:///{name}", wait=0.0)
        assert store.perform(identity, Ask())["round"] == 1
    Store.open(f"sqlite:///{link}", wait=0.0).close()


def test_removing_what_lies_beside_the_store_lets_nobody_in(tmp_path):
    database = tmp_path / "store.db"
    with holding(database, "http://here") as other:
        assert other.stdout.readline() == "held\n"
        holder_path(database).unlink()
        with pytest.raises(Refused, match="in use by another process"):
            Store.open(f"sqlite:///{database}", wait=0.0)
        other.kill()


def test_the_second_try_in_a_process_costs_the_first_no_lock(sqlite_url):
    """To close a descriptor of a file drops SQLite's locks on it; then whoever looks into the file removes its log."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with Store.open(sqlite_url) as store:
        mail = store.create(MAIL).id
        with pytest.raises(Refused, match="in use"):
            Store.open(sqlite_url, wait=0.0)
        assert holder(file) == {"pid": os.getpid(), "address": None}
        subprocess.run([sys.executable, "-c", LOOKING, str(file)], capture_output=True, check=True)
        assert Path(f"{file}-wal").exists()
        assert store.perform(mail, Ask())["round"] == 1
    assert not holder_path(file).exists()
