"""Long lists are written by a process of their own: what it keeps, what it says, and what becomes of it."""

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import psutil
import pytest

from aftereffect.service.desk import Desk
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Finish, Pause, Resume, Tell
from aftereffect.service.store import dictation, ledger, scribe, statements, writer
from aftereffect.service.store.dictation import Script
from aftereffect.service.store.locking import holder

MAIL = {"name": "Mail", "arms": ["short", "long", "none"], "max_delay": 1, "seed": 7}


@pytest.fixture(autouse=True)
def portions(monkeypatch):
    """Lists count as long from six commands on, go in portions of eight, and are set down after three."""
    monkeypatch.setattr(writer, "MANY", 6)
    monkeypatch.setattr(writer, "PORTION", 8)
    monkeypatch.setattr(ledger, "SET_DOWN_AFTER", 3)


def played(identity, first, last):
    return [(identity, command) for t in range(first, last + 1) for command in (Ask(), Tell(t, 0.1 * t % 1.0))]


def wait_until(holds):
    begun = time.monotonic()
    while not holds():
        time.sleep(0.01)
        assert time.monotonic() - begun < 60


def scribes():
    return [child for child in psutil.Process().children() if dictation.PROGRAM.name in " ".join(child.cmdline())]


def codes(answers):
    return [answer.code if isinstance(answer, Refused) else answer["round"] for answer in answers]


def test_what_is_dictated_is_what_single_commands_write(sqlite_url, tmp_path):
    alone = f"sqlite:///{tmp_path}/alone.db"
    rows = {}
    for url, long in ((sqlite_url, True), (alone, False)):
        with Desk.open(url) as desk:
            desk.now = lambda: "2026-01-01T00:00:00Z"
            identity = desk.create({**MAIL, "units": 2})["id"]
            commands = [
                (identity, command)
                for t in range(1, 41)
                for command in (Ask(), Tell(t, None if t % 7 == 0 else 0.1 * t % 1.0, "1"), Tell(t, 5.0 * (t % 3), "2"))
            ]
            answers = desk.perform_many(commands) if long else [desk.perform(*command) for command in commands]
            assert len(scribes()) == long
            rows[long] = answers, desk.rounds(identity, limit=1000)["items"], desk.events(identity)["items"][0]["body"]
            assert desk.verify(identity)[0] | {"experiment": "", "head": ""} == {
                **{"experiment": "", "ok": True, "rounds": 40, "finding": None, "events": 120, "head": ""}
            }
    assert rows[True] == rows[False]
    assert {row["status"] for row in rows[True][1]} == {"reported", "missing", "void"}
    assert not scribes()


KINDS = (Pause(), Resume(), Away("long"), Back("long"), Ask(), Ask("2"))


def any_commands(rng, n):
    """Commands of all kinds, most of them possible where they stand."""
    commands, t = [], 1
    for _ in range(n):
        kind = rng.random()
        if kind < 0.55:
            commands += [Ask(), Tell(t, rng.choice([0.25, 0.5, None, 9.0]), "1"), Tell(t, rng.random(), "2")]
            t += 1
        elif kind < 0.75:
            commands.append(Amend(max(1, t - rng.randrange(4)), rng.choice([0.75, None]), rng.choice("12")))
        elif kind < 0.85:
            commands.append(Tell(rng.randrange(1, t + 1), 0.5, rng.choice("12")))
        else:
            commands.append(rng.choice(KINDS))
            if commands[-1] == Pause():
                commands.append(Resume())
    return [*commands, Finish()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_delay", [0, 2])
def test_whatever_a_list_holds_it_does_what_single_commands_do(tmp_path, seed, max_delay):
    found = {}
    for long in (True, False):
        with Desk.open(f"sqlite:///{tmp_path}/{long}.db") as desk:
            desk.now = lambda: "2026-01-01T00:00:00Z"
            identity = desk.create({**MAIL, "units": 2, "max_delay": max_delay})["id"]
            items = [(identity, command) for command in any_commands(random.Random(seed), 60)]
            lists = [items] if long else [[item] for item in items]
            answers = [answer for each in lists for answer in desk.perform_many(each)]
            shown = [vars(answer) if isinstance(answer, Refused) else answer for answer in answers]
            events = [{**event, "hash": ""} for event in desk.events(identity, limit=1000)["items"]]
            found[long] = shown, desk.rounds(identity, limit=1000)["items"], events
            assert desk.verify(identity)[0]["ok"]
            assert len(scribes()) == long
    assert found[True] == found[False]


def test_a_report_after_another_change_in_one_transaction_is_kept(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        commands = [Ask(), Pause(), Resume(), Tell(1, 0.5)]
        *_, answer = desk.perform_many([(identity, command) for command in commands])
        assert "warm-up" in answer["why"]
        (row,) = desk.rounds(identity)["items"]
        assert (row["status"], row["why"]) == ("reported", answer["why"])
        assert desk.verify(identity)[0]["ok"]


def test_a_report_repeated_later_in_its_own_portion_is_answered_again(sqlite_url, monkeypatch):
    monkeypatch.setattr(writer, "PORTION", 2048)
    with Desk.open(sqlite_url) as desk:
        identity = desk.create({**MAIL, "max_delay": 0})["id"]
        *_, answer = desk.perform_many([*played(identity, 1, 12), (identity, Tell(1, 0.1))])
        assert (answer["repeated"], answer["total"]) == (True, 0.1)
        assert desk.verify(identity)[0]["ok"]


def test_a_store_that_is_removed_is_not_made_again(sqlite_url):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        for ending in ("", "-wal", "-shm"):
            os.remove(f"{file}{ending}")
        answers = desk.perform_many(played(identity, 1, 4))
        assert codes(answers) == ["busy"] * 8
        assert "was removed or replaced" in answers[0].detail
        assert not file.exists()
        # Nor by the process itself, if it is started at the wrong moment.
        assert not desk._place.dictation.start()
        assert not file.exists()


def test_new_stores_have_large_pages(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        desk.create(MAIL)
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert connection.execute("PRAGMA page_size").fetchone() == (8192,)
    connection.close()


def test_short_lists_start_no_process(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 2))
        assert not scribes()


def test_a_report_repeated_while_its_round_is_on_its_way_is_answered_from_the_store(sqlite_url, monkeypatch):
    prepared = []
    prepare = writer.Writer._prepared
    monkeypatch.setattr(
        writer.Writer, "_prepared", lambda *given: prepared.append(prepare(*given)) or prepared[-1]
    )
    with Desk.open(sqlite_url) as desk:
        identity = desk.create({**MAIL, "max_delay": 0})["id"]
        # Rounds 1 and 2 are no longer in memory when they are told again, and not yet in the store.
        again = [(identity, Tell(1, 0.1)), (identity, Tell(2, 0.9))]
        answers = desk.perform_many([*played(identity, 1, 12), *again, *played(identity, 13, 14)])
        assert codes(answers) == [t for t in range(1, 13) for _ in range(2)] + [1, "conflict"] + [13, 13, 14, 14]
        assert answers[24]["repeated"]
        assert None in prepared
        assert desk.verify(identity)[0]["ok"]


def test_a_process_that_is_killed_at_its_work_is_told_of_and_another_takes_its_place(sqlite_url):
    with Desk.open(sqlite_url) as desk, ThreadPoolExecutor(1) as other:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 10))
        (first,) = scribes()
        first.suspend()
        asking = other.submit(desk.perform_many, played(identity, 11, 14))
        with pytest.raises(TimeoutError):
            asking.result(0.3)
        first.kill()
        answers = asking.result(60)
        assert codes(answers) == ["busy"] * 8
        assert "it is not known whether this was kept" in answers[0].detail
        assert codes(desk.perform_many(played(identity, 11, 20))) == [t for t in range(11, 21) for _ in range(2)]
        (second,) = scribes()
        assert second.pid != first.pid
        assert desk.verify(identity)[0]["ok"]


def test_a_process_that_is_killed_while_idle_is_replaced_and_nobody_hears_of_it(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 10))
        (first,) = scribes()
        first.kill()
        wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE)
        assert codes(desk.perform_many(played(identity, 11, 14))) == [t for t in range(11, 15) for _ in range(2)]
        assert [each.pid for each in scribes()] != [first.pid]


def test_killed_at_any_moment_nothing_acknowledged_is_lost(sqlite_url):
    with Desk.open(sqlite_url) as desk, ThreadPoolExecutor(1) as other:
        ids = [desk.create({**MAIL, "seed": seed})["id"] for seed in range(4)]
        told = dict.fromkeys(ids, 0)
        stop = time.monotonic() + 3.0

        def kill():
            kills = 0
            while time.monotonic() < stop:
                time.sleep(0.12)
                for each in scribes():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        each.kill()
                        kills += 1
            return kills

        killing = other.submit(kill)
        while time.monotonic() < stop:
            asked = desk.perform_many([(i, Ask()) for i in ids] * 3)[:4]
            reports = [
                (i, Tell(a["round"], 0.5)) for i, a in zip(ids, asked, strict=True) if not isinstance(a, Refused)
            ]
            for (i, tell), answer in zip(reports, desk.perform_many(reports * 3), strict=False):
                if not isinstance(answer, Refused):
                    told[i] = tell.round
        assert killing.result() > 3
        for identity, last in told.items():
            assert last > 3
            rows = desk.rounds(identity, limit=1000)["items"]
            assert {row["status"] for row in rows[:last]} == {"reported"}
        assert all(verdict["ok"] for verdict in desk.verify())


def test_where_no_process_can_be_had_the_lists_are_written_all_the_same(sqlite_url, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        assert codes(desk.perform_many(played(identity, 1, 20))) == [t for t in range(1, 21) for _ in range(2)]
        assert desk.verify(identity)[0]["ok"]
    assert caplog.text.count("long lists are written without a process of their own") == 1


def test_a_process_that_cannot_open_the_file_is_not_asked_again_soon(sqlite_url, caplog):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        told = desk._place.dictation
        file, told._file = told._file, Path("/nowhere/shop.db")
        for t in (1, 5):
            assert codes(desk.perform_many(played(identity, t, t + 3))) == [t + i // 2 for i in range(8)]
        assert caplog.text.count("unable to open database file") == 1
        assert not scribes()
        told._not_before = time.monotonic()
        told._file = file
        desk.perform_many(played(identity, 9, 12))
        assert len(scribes()) == 1
        assert desk.verify(identity)[0]["ok"]


@pytest.mark.parametrize("body", ["print()", "print('hello')", "import sys; sys.stdout.write('x' * 100)"])
def test_what_is_printed_when_a_python_starts_is_not_taken_for_an_answer(sqlite_url, tmp_path, monkeypatch, body):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        assert codes(desk.perform_many(played(identity, 1, 4))) == [t for t in range(1, 5) for _ in range(2)]
        assert len(scribes()) == 1


def test_one_that_says_nothing_is_not_waited_for(sqlite_url, tmp_path, monkeypatch, caplog):
    program = tmp_path / "deaf.py"
    program.write_text("import time; time.sleep(600)")
    monkeypatch.setattr(dictation, "PROGRAM", program)
    monkeypatch.setattr(dictation, "GREETING_S", 0.2)
    monkeypatch.setattr(dictation, "ENDING_S", 0.2)
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        assert codes(desk.perform_many(played(identity, 1, 4))) == [t for t in range(1, 5) for _ in range(2)]
        assert not scribes()
    assert "it says nothing" in caplog.text


def test_a_process_forked_meanwhile_holds_up_nobody(sqlite_url):
    """It has the other end of the pipe open, too, and so the end of the pipe never comes."""
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 4))
        forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        forked.start()
        begun = time.monotonic()
    assert time.monotonic() - begun < dictation.ENDING_S / 2
    assert forked.is_alive()
    forked.kill()
    forked.join()


def test_a_path_that_is_no_text_can_be_dictated_to(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    with Desk.open(f"{folder}/shop.db") as desk:
        identity = desk.create(MAIL)["id"]
        assert codes(desk.perform_many(played(identity, 1, 4))) == [t for t in range(1, 5) for _ in range(2)]
        assert len(scribes()) == 1


def test_the_lock_is_passed_on_where_standard_streams_are_closed(sqlite_url):
    closed = "import os; os.close(0); os.close(1)\n"
    said = 'os.write(2, b".\\n")'
    script = closed + OWNER.replace("print(os.getpid(), flush=True)", said)
    owner = subprocess.Popen([sys.executable, "-c", script, sqlite_url], stderr=subprocess.PIPE)
    try:
        owner.stderr.readline()
        (child,) = psutil.Process(owner.pid).children()
        file = Path(sqlite_url.removeprefix("sqlite:///"))
        held = [os.readlink(fd) for fd in Path(f"/proc/{child.pid}/fd").iterdir()]
        assert f"{file}.lock" in held
    finally:
        owner.kill()
        owner.wait()
        owner.stderr.close()


def test_errors_of_the_other_process_are_those_of_this_one(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 4))
        script = Script()
        statements.append.run(script, [(1, 1, "ask", 1, "", "{}", "now", "0" * 64)])
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed") as caught:
            desk._place.dictation.keep(script)
        assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
        # Nothing of it was kept, and all goes on.
        assert codes(desk.perform_many(played(identity, 5, 8))) == [t for t in range(5, 9) for _ in range(2)]
        assert desk.verify(identity)[0]["ok"]


def test_a_script_is_read_back_as_it_was_noted():
    script = Script()
    rows = [(1, "é", None, 0.1 + 0.2, 5e-324, 2**53 + 1), (2, "", True, -0.0, 1.7976931348623157e308, -(2**63))]
    script.note(3, rows)
    script.note(0, [(float("nan"),)])
    first, second = script
    assert first == [3, [list(row) for row in rows]]
    assert str(first[1][1][3]) == "-0.0"
    # SQLite takes NaN for NULL, too.
    assert second == [0, [[None]]]
    assert orjson.loads(script.text()) == [first, second]


def test_the_process_outlives_signals_that_stop_a_service(sqlite_url):
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 4))
        (child,) = scribes()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            child.send_signal(number)
        assert codes(desk.perform_many(played(identity, 5, 8))) == [t for t in range(5, 9) for _ in range(2)]
        assert [each.pid for each in scribes()] == [child.pid]


OWNER = """
import os, sys, time
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Finish, Pause, Resume, Tell
from aftereffect.service.desk import Desk
from aftereffect.service.store import writer
writer.MANY, writer.PORTION = 6, 8
desk = Desk.open(sys.argv[1])
mail = desk.create({"name": "Mail", "arms": ["a", "b"], "max_delay": 1, "seed": 7})["id"]
desk.perform_many([(mail, command) for t in range(1, 21) for command in (Ask(), Tell(t, 0.5))])
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_the_lock_is_held_until_the_process_that_writes_is_gone(sqlite_url):
    """Its owner is killed while it is at a transaction: nobody else may have the store before that is over."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    owner = subprocess.Popen([sys.executable, "-c", OWNER, sqlite_url], stdout=subprocess.PIPE)
    try:
        owner.stdout.readline()
        (child,) = psutil.Process(owner.pid).children()
        child.suspend()
        owner.kill()
        owner.wait()
        assert holder(file) is not None
        with pytest.raises(Refused, match="in use"):
            Desk.open(sqlite_url, wait=0.3)
        child.resume()
        child.wait(60)
        with Desk.open(sqlite_url) as desk:
            assert [(verdict["ok"], verdict["rounds"]) for verdict in desk.verify()] == [(True, 20)]
    finally:
        owner.stdout.close()


def test_a_store_that_is_replaced_takes_no_dictation(sqlite_url, tmp_path):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with Desk.open(sqlite_url) as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform_many(played(identity, 1, 4))
        shutil.copy(file, tmp_path / "other.db")
        os.replace(tmp_path / "other.db", file)
        answers = desk.perform_many(played(identity, 5, 8))
        assert codes(answers) == ["busy"] * 8
        assert "was removed or replaced" in answers[0].detail


def test_half_a_frame_is_no_frame(tmp_path):
    path = tmp_path / "frames"
    with path.open("wb") as target:
        scribe.write(target, b'{"a":1}')
        scribe.write(target, b"[1,2,3]")
    path.write_bytes(path.read_bytes()[:-1])
    with path.open("rb") as source:
        assert scribe.read(source) == {"a": 1}
        with pytest.raises(EOFError):
            scribe.read(source)
