"""Long lists on SQLite: the next portion runs while the last is being written, and nothing is said too early."""

import gc
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import OperationalError

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store import loading, sweeping, writer
from aftereffect.service.store.ledger import Ledger
from aftereffect.service.store.places import Place
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long", "none"], "max_delay": 1, "seed": 7}


@pytest.fixture
def portions(monkeypatch):
    """Lists count as long from six commands on, and go in portions of four."""
    monkeypatch.setattr(writer, "MANY", 6)
    monkeypatch.setattr(writer, "PORTION", 4)


def codes(answers):
    return [answer.code if isinstance(answer, Refused) else answer["round"] for answer in answers]


def failing(monkeypatch, fails):
    """Let those transactions fail, at their end, for which `fails` says so."""
    commit = Place._commit

    def broken(self, act):
        if fails():
            raise OperationalError("COMMIT", None, OSError("the disk went away"))
        commit(self, act)

    monkeypatch.setattr(Place, "_commit", broken)


def holding_commits(monkeypatch):
    """Hold every commit up; return what says that one has come, and what lets them go on."""
    commit, seen, going = Place._commit, threading.Event(), threading.Event()

    def slow(self, act):
        seen.set()
        assert going.wait(60)
        commit(self, act)

    monkeypatch.setattr(Place, "_commit", slow)
    return seen, going


def test_a_long_list_gives_what_single_commands_give(sqlite_url, monkeypatch):
    kept = []
    keep = Ledger.keep
    monkeypatch.setattr(Ledger, "keep", lambda self, page: kept.append(len(page.items)) or keep(self, page))
    with Store.open(sqlite_url) as store:
        one, two = store.create(MAIL)["id"], store.create(MAIL)["id"]
        commands = [command for t in range(1, 1501) for command in (Ask(), Tell(t, t % 4 / 4))]
        kept.clear()
        answers = store.perform_many([(one, command) for command in commands])
        assert kept == [2048, 952]
        assert codes(answers) == [t for t in range(1, 1501) for _ in range(2)]
        singly = [store.perform(two, command) for command in commands[:100]]
        assert [answer["arm"] for answer in singly] == [answer["arm"] for answer in answers[:100]]
        assert [verdict["ok"] for verdict in store.verify()] == [True, True]
        assert store.experiment(one)["round"] == 1500


def test_a_portion_is_answered_only_when_it_is_on_the_disk(sqlite_url, portions, monkeypatch):
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL)["id"]
        seen, held = holding_commits(monkeypatch)
        with ThreadPoolExecutor(1) as other:
            commands = [(identity, command) for t in range(1, 11) for command in (Ask(), Tell(t, 0.5))]
            asking = other.submit(store.perform_many, commands)
            assert seen.wait(60)
            time.sleep(0.1)
            assert not asking.done()
            assert store.experiment(identity)["round"] == 0
            held.set()
            assert codes(asking.result()) == [t for t in range(1, 11) for _ in range(2)]


def test_what_builds_on_a_portion_that_was_not_kept_is_run_again(sqlite_url, portions, monkeypatch):
    with Store.open(sqlite_url) as store:
        one, two = store.create(MAIL)["id"], store.create(MAIL)["id"]
        left = ["fail"]
        failing(monkeypatch, lambda: bool(left and left.pop()))
        first = [(one, Ask()), (one, Tell(1, 0.5)), (one, Ask()), (one, Tell(2, 0.5))]
        second = [(one, Tell(2, 0.5)), (one, Ask()), (two, Ask()), (two, Tell(1, 0.25))]
        answers = store.perform_many([*first, *second])
        # The second portion saw rounds 1 and 2 in memory; they were not kept, so it is run on what is there.
        assert codes(answers) == ["busy"] * 4 + ["not_open", 1, 1, 1]
        assert [row["status"] for row in store.rounds(one)["items"]] == ["open"]
        assert [verdict["ok"] for verdict in store.verify()] == [True, True]


def test_a_fault_in_a_later_portion_waits_for_the_one_before(sqlite_url, portions, monkeypatch, caplog):
    whole = loading.Experiment.do

    def faulty(self, command, at, recalled=None):
        done = whole(self, command, at, recalled)
        if command == Tell(3, 0.125):
            raise ZeroDivisionError
        return done

    monkeypatch.setattr(loading.Experiment, "do", faulty)
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL)["id"]
        commands = [Ask(), Tell(1, 0.5), Ask(), Tell(2, 0.5), Ask(), Tell(3, 0.125), Tell(3, 0.5), Ask()]
        assert codes(store.perform_many([(identity, c) for c in commands])) == [1, 1, 2, 2, 3, "corrupt", 3, 4]
        assert store.verify(identity)[0]["ok"]
    assert "ZeroDivisionError" in caplog.text


def test_a_fault_while_keeping_is_answered(sqlite_url, portions, monkeypatch, caplog):
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL)["id"]
        with monkeypatch.context() as patched:
            patched.setattr(Place, "_commit", None)
            answers = store.perform_many([(identity, Ask())] * 9)
            assert codes(answers) == ["busy"] * 9
        assert store.perform(identity, Ask())["round"] == 1
    assert "TypeError" in caplog.text


def test_a_portion_that_ends_late_is_still_seen_to_end(sqlite_url, portions, monkeypatch):
    """Between its last word and its end the thread that keeps may be held up; nobody may wait for another word."""
    keep = writer.Writer._keep

    def held_up(self, pieces, page):
        problem = keep(self, pieces, page)
        time.sleep(0.05)
        return problem

    monkeypatch.setattr(writer.Writer, "_keep", held_up)
    with Store.open(sqlite_url) as store, ThreadPoolExecutor(1) as pool:
        identity = store.create(MAIL)["id"]
        failing(monkeypatch, lambda: True)
        answers = pool.submit(store.perform_many, [(identity, Ask())] * 8).result(30)
        assert set(codes(answers)) == {"busy"}


def test_creations_and_tokens_may_come_between(sqlite_url, portions):
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL)["id"]
        stop = threading.Event()

        def tokens():
            while not stop.is_set():
                store.create_token("t", ["read"])
                store.create(MAIL)

        with ThreadPoolExecutor(2) as others:
            made = [others.submit(tokens) for _ in range(2)]
            commands = [(identity, command) for t in range(1, 101) for command in (Ask(), Tell(t, 0.5))]
            for at in range(0, 200, 20):
                assert all(isinstance(answer, dict) for answer in store.perform_many(commands[at : at + 20]))
            stop.set()
            for each in made:
                each.result()
        assert all(verdict["ok"] for verdict in store.verify())
        assert len(store.tokens()) >= 2


def test_garbage_collection_and_thread_switching_are_as_before(sqlite_url, portions):
    before = gc.isenabled(), sys.getswitchinterval()
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL)["id"]
        store.perform_many([(identity, Ask())] * 20)
    assert (gc.isenabled(), sys.getswitchinterval()) == before


def test_clients_that_never_let_up_let_neither_log_nor_memory_grow(sqlite_url, portions, monkeypatch):
    monkeypatch.setattr(sweeping, "LOG_ROWS", 20)
    held, swept = [], []
    take_off, sweep = writer.Writer._take_off, sweeping.Sweeper.sweep

    def watched(self, pieces, page):
        flight = take_off(self, pieces, page)
        held.append(len(self.ledger._held))
        return flight

    monkeypatch.setattr(writer.Writer, "_take_off", watched)
    monkeypatch.setattr(
        sweeping.Sweeper, "sweep", lambda self: swept.append(threading.current_thread().name) or sweep(self)
    )
    with Store.open(sqlite_url) as store:
        ids = [store.create({**MAIL, "seed": seed})["id"] for seed in range(12)]
        store._writer.ledger.most_held = 5
        # One list, one stream: nothing of this is done in between streams.
        answers = store.perform_many([(i, c) for t in range(1, 6) for i in ids for c in (Ask(), Tell(t, 0.5))])
        assert codes(answers) == [t for t in range(1, 6) for _ in range(24)]
        # A portion touches two experiments; neither is forgotten before it is kept.
        assert max(held) <= 5
        assert swept.count("aftereffect-keeper_0") >= 5
        assert all(verdict["ok"] for verdict in store.verify())


def test_what_is_on_its_way_to_the_disk_is_not_forgotten(sqlite_url, portions):
    with Store.open(sqlite_url) as store:
        ids = [store.create({**MAIL, "seed": seed})["id"] for seed in range(6)]
        store._writer.ledger.most_held = 1
        for t in range(1, 4):
            answers = store.perform_many([(i, c) for i in ids for c in (Ask(), Tell(t, 0.5))])
            assert codes(answers) == [t] * 12
        assert all(verdict["ok"] for verdict in store.verify())


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_what_was_acknowledged_is_there(sqlite_url, portions, monkeypatch, seed):
    rng = random.Random(seed)
    failing(monkeypatch, lambda: rng.random() < 0.3)
    told: dict[tuple[str, int], float] = {}
    with Store.open(sqlite_url) as store:
        ids = []
        while len(ids) < 3:
            try:
                ids.append(store.create({**MAIL, "seed": len(ids)})["id"])
            except Refused:
                continue
        latest = dict.fromkeys(ids, 1)
        refused = 0
        for _ in range(40):
            commands = []
            for _ in range(rng.choice([1, 3, 12, 30])):
                identity = rng.choice(ids)
                guess = max(1, latest[identity] + rng.choice([-1, 0, 0, 0, 1]))
                commands.append((identity, Ask() if rng.random() < 0.5 else Tell(guess, rng.choice([0.25, 0.5]))))
            for (identity, command), answer in zip(commands, store.perform_many(commands), strict=True):
                if isinstance(answer, Refused):
                    refused += answer.code == "busy"
                elif isinstance(command, Ask):
                    assert answer["round"] >= max((r for i, r in told if i == identity), default=0)
                    latest[identity] = answer["round"]
                else:
                    assert told.setdefault((identity, command.round), command.total) == command.total
        assert refused > 0
        assert len(told) > 30
        for identity in ids:
            rows = store.rounds(identity, limit=1000)["items"]
            assert [row["round"] for row in rows] == list(range(1, len(rows) + 1))
            for row in rows:
                assert told.get((identity, row["round"]), row["total"]) == row["total"]
            assert max((r for i, r in told if i == identity), default=0) <= len(rows)
        assert all(verdict["ok"] for verdict in store.verify())
