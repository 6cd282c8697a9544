"""The writer: single commands before long lists, slices, what a failed transaction leaves, damaged experiments."""

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DatabaseError, OperationalError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Ask, Reports, Tell
from aftereffect.service.messages import ReportItem
from aftereffect.service.store import event_log, sqlite_file, writer
from aftereffect.service.store.event_log import Changes
from aftereffect.service.store.store import Store
from aftereffect.service.store.writer import Job, Writer

MAIL = {"name": "Mail", "arms": ["short", "long", "none"], "high": 1.0, "max_delay": 1, "seed": 7}


@pytest.fixture
def slices(monkeypatch):
    """Lists count as long from three commands on, and go in slices of four."""
    monkeypatch.setattr(writer, "SHORT", 2)
    monkeypatch.setattr(writer, "SLICE", 4)


def codes(answers):
    return [answer.code if isinstance(answer, Refused) else answer["round"] for answer in answers]


def sqlite_error(name, words="database disk image is malformed"):
    cause = sqlite3.DatabaseError(words)
    cause.sqlite_errorname = name
    return DatabaseError("SQL", None, cause)


def failing(store, fails):
    """Let those transactions fail, at their end, for which `fails` says so."""

    def broken(_):
        if fails():
            raise OperationalError("COMMIT", None, OSError("the disk went away"))

    event.listen(store._database.writing, "commit", broken)


def holding_commits(store):
    """Hold every commit up; return what says that one has come, and what lets them go on."""
    seen, going = threading.Event(), threading.Event()

    def slow(_):
        seen.set()
        assert going.wait(60)

    event.listen(store._database.writing, "commit", slow)
    return seen, going


def transactions(monkeypatch):
    """Return a list to which every transaction adds its items."""
    seen, commit = [], Writer._commit
    monkeypatch.setattr(Writer, "_commit", lambda self, items, *more: seen.append(items) or commit(self, items, *more))
    return seen


def test_a_long_list_gives_what_single_commands_give(store, monkeypatch):
    one, two = store.create(MAIL).id, store.create(MAIL).id
    commands = [command for t in range(1, 601) for command in (Ask(), Tell(t, t % 4 / 4))]
    seen = transactions(monkeypatch)
    answers = store.perform_many([(one, command) for command in commands])
    assert [len(items) for items in seen] == [512, 512, 176]
    assert codes(answers) == [t for t in range(1, 601) for _ in range(2)]
    singly = [store.perform(two, command) for command in commands[:100]]
    assert [answer["arm"] for answer in singly] == [answer["arm"] for answer in answers[:100]]
    assert [verdict.ok for verdict in store.verify()] == [True, True]
    assert store.experiment(one).round == 600


@pytest.mark.parametrize("player", ["advised", "model"])
def test_refused_reports_leave_what_their_transaction_did_before(store, monkeypatch, player):
    given = {**MAIL, "player": player} if player == "advised" else {"name": "M", "arms": ["a", "b"], "player": player}
    one, two = store.create({**given, "seed": 7}).id, store.create({**given, "seed": 7}).id
    # The first report is accepted, the second contradicts what is known.
    reports = Reports([ReportItem(round=2, total=0.5), ReportItem(round=1, total=0.875)])
    before = [Ask(), Tell(1, 0.25), Ask()]
    seen = transactions(monkeypatch)
    answers = store.perform_many([(one, command) for command in (*before, reports, Tell(2, 0.75), Ask())])
    assert [len(items) for items in seen] == [6]
    wanted = store.perform_many([(two, command) for command in (*before, Tell(2, 0.75), Ask())])
    assert codes(answers) == [1, 1, 2, "conflict", 2, 3]
    assert codes(wanted) == [1, 1, 2, 2, 3]
    assert [row["total"] for row in store.rounds(one)["items"]] == [0.25, 0.75, None]
    assert [row["arm"] for row in store.rounds(one)["items"]] == [row["arm"] for row in store.rounds(two)["items"]]
    assert [event["kind"] for event in store.events(one)["items"]] == ["ask", "tell", "ask", "tell", "ask"]
    assert all(verdict.ok for verdict in store.verify())


def test_single_commands_go_before_the_rest_of_a_long_list(store, slices, monkeypatch):
    one, two = store.create(MAIL).id, store.create(MAIL).id
    seen, going = holding_commits(store)
    served = transactions(monkeypatch)
    long = Job([(one, command) for t in range(1, 11) for command in (Ask(), Tell(t, 0.5))])
    store._writer.submit(long)
    assert seen.wait(60)
    # A second list and a single command come while the first slice is being committed.
    other = Job([(two, Ask())] * 6)
    store._writer.submit(other)
    single = Job([(two, Ask())])
    store._writer.submit(single)
    going.set()
    assert codes(long.future.result(60)) == [t for t in range(1, 11) for _ in range(2)]
    assert codes(single.future.result(60)) == [1]
    assert codes(other.future.result(60)) == [1] * 6
    # The single command shares the second transaction with one slice of the list that came before it.
    assert served[1] == [(two, Ask()), *long.items[4:8]]
    assert max(map(len, served)) <= 5


def test_a_slice_loads_few_experiments(store_url, monkeypatch):
    monkeypatch.setattr(writer, "SHORT", 2)
    monkeypatch.setattr(writer, "SLICE_LOADS", 3)
    with Store.open(store_url) as store:
        ids = [store.create({**MAIL, "seed": seed}).id for seed in range(10)]
    with Store.open(store_url) as store:
        seen = transactions(monkeypatch)
        assert codes(store.perform_many([(i, Ask()) for i in ids])) == [1] * 10
        assert [len(items) for items in seen] == [3, 3, 3, 1]
        # All are in memory now: the list is one slice.
        assert codes(store.perform_many([(i, Tell(1, 0.5)) for i in ids])) == [1] * 10
        assert [len(items) for items in seen[4:]] == [10]


def test_loading_replays_less_than_the_interval_between_checkpoints(store_url, monkeypatch):
    with Store.open(store_url) as store:
        ids = [store.create({**MAIL, "seed": seed}).id for seed in range(4)]
        for t in range(1, 151):
            assert codes(store.perform_many([(i, c) for i in ids for c in (Ask(), Tell(t, 0.5))])) == [t] * 8
    replayed: dict[str, int] = {}
    replay = event_log.Loaded.replay

    def counted(self, found):
        replayed[self.id] = replayed.get(self.id, 0) + 1
        return replay(self, found)

    monkeypatch.setattr(event_log.Loaded, "replay", counted)
    with Store.open(store_url) as store:
        assert codes(store.perform_many([(i, Ask()) for i in ids])) == [151] * 4
    assert len(replayed) > 0
    assert max(replayed.values()) < event_log.CHECKPOINT_EVERY <= 64


def test_what_comes_after_a_slice_that_was_not_kept_builds_on_what_is_there(store, slices):
    one, two = store.create(MAIL).id, store.create(MAIL).id
    left = ["fail"]
    failing(store, lambda: bool(left and left.pop()))
    first = [(one, Ask()), (one, Tell(1, 0.5)), (one, Ask()), (one, Tell(2, 0.5))]
    second = [(one, Tell(2, 0.5)), (one, Ask()), (two, Ask()), (two, Tell(1, 0.25))]
    answers = store.perform_many([*first, *second])
    assert codes(answers) == ["busy"] * 4 + ["not_open", 1, 1, 1]
    assert [row["status"] for row in store.rounds(one)["items"]] == ["open"]
    assert [verdict.ok for verdict in store.verify()] == [True, True]


def test_creations_and_tokens_may_come_between(store, slices):
    identity = store.create(MAIL).id
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
    assert all(verdict.ok for verdict in store.verify())
    assert len(store.tokens()) >= 2


def counting_checkpoints(monkeypatch):
    seen, checkpoint = [], sqlite_file.SqliteFile.checkpoint
    monkeypatch.setattr(sqlite_file.SqliteFile, "checkpoint", lambda self, at: seen.append(checkpoint(self, at)))
    return seen


def test_clients_that_never_let_up_let_neither_log_nor_memory_grow(sqlite_url, slices, monkeypatch):
    monkeypatch.setattr(writer, "LOG_ROWS", 20)
    moved = counting_checkpoints(monkeypatch)
    with Store.open(sqlite_url) as store:
        ids = [store.create({**MAIL, "seed": seed}).id for seed in range(12)]
        store._writer.most_loaded = 5
        held, commit = [], Writer._commit
        monkeypatch.setattr(
            Writer, "_commit", lambda self, items: held.append(len(self._loaded)) or commit(self, items)
        )
        answers = store.perform_many([(i, c) for t in range(1, 6) for i in ids for c in (Ask(), Tell(t, 0.5))])
        assert codes(answers) == [t for t in range(1, 6) for _ in range(24)]
        assert max(held[1:]) <= 5
        assert len(moved) >= 5
        assert all(verdict.ok for verdict in store.verify())


def test_a_full_disk_makes_the_writer_move_the_log_into_the_file(sqlite_url, monkeypatch):
    """Clients that retry leave it no idle moment, and the room may be in the log."""
    with Store.open(sqlite_url) as store:
        identity = store.create(MAIL).id
        moved = counting_checkpoints(monkeypatch)

        def full(_):
            raise sqlite_error("SQLITE_FULL", "database or disk is full")

        event.listen(store._database.writing, "commit", full, once=True)
        with pytest.raises(Refused, match="nothing was kept"):
            store.perform(identity, Ask())
        assert moved
        assert store.perform(identity, Ask())["round"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_what_was_acknowledged_is_there(store, slices, seed):
    rng = random.Random(seed)
    failing(store, lambda: rng.random() < 0.3)
    told: dict[tuple[str, int], float] = {}
    ids = []
    while len(ids) < 3:
        try:
            ids.append(store.create({**MAIL, "seed": len(ids)}).id)
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
    assert all(verdict.ok for verdict in store.verify())


# One experiment that is damaged is nobody else's affair.


def damage(store: Store, identity: str) -> None:
    """Alter the log of an experiment behind the store's back."""
    with store._database.transaction() as transaction:
        connection, transaction.rows = transaction.connection, 1
        number = f"(SELECT number FROM experiments WHERE id = '{identity}')"
        connection.exec_driver_sql(f"UPDATE events SET body = '{{}}' WHERE experiment = {number}")
        connection.exec_driver_sql(f"DELETE FROM checkpoints WHERE experiment = {number}")


def crowd(url: str, count: int = 8) -> list[str]:
    """Make experiments with an open round each; the fourth is damaged."""
    with Store.open(url) as store:
        ids = [store.create({**MAIL, "seed": seed}).id for seed in range(count)]
        store.perform_many([(i, Ask()) for i in ids])
        damage(store, ids[3])
    return ids


def test_a_damaged_experiment_fails_alone_in_a_list_and_singly(store_url, caplog):
    ids = crowd(store_url)
    with Store.open(store_url) as store:
        answers = store.perform_many([(i, Tell(1, 0.5)) for i in ids])
        assert codes(answers) == [1, 1, 1, "corrupt", 1, 1, 1, 1]
        assert ids[3] in answers[3].detail
        for _ in range(3):
            assert store.perform(ids[0], Ask())["round"] == 2
            with pytest.raises(Refused, match="hash of event 1") as refused:
                store.perform(ids[3], Ask())
            assert refused.value.code == "corrupt"
        # Said once, in one line.
        assert [record.exc_info for record in caplog.records if ids[3] in record.getMessage()] == [None]
        store.check_health()
        assert store.status().damaged == [ids[3]]
        with pytest.raises(Corrupt):
            store.experiment(ids[3])
        assert [verdict.ok for verdict in store.verify()] == [True] * 3 + [False] + [True] * 4


def test_a_page_that_cannot_be_read_is_the_fault_of_its_experiment(store_url, monkeypatch, caplog):
    ids = crowd(store_url)
    load = event_log.load

    def unreadable(connection, identity):
        if identity == ids[5]:
            raise sqlite_error("SQLITE_CORRUPT_INDEX")
        return load(connection, identity)

    monkeypatch.setattr(event_log, "load", unreadable)
    with Store.open(store_url) as store:
        assert codes(store.perform_many([(i, Tell(1, 0.5)) for i in ids]))[4:] == [1, "corrupt", 1, 1]
        assert store.perform(ids[4], Ask())["round"] == 2
        monkeypatch.undo()
        # Tried again after a while.
        store._writer.damaged[ids[5]] = store._writer.damaged[ids[5]][0], 0.0
        assert store.perform(ids[5], Tell(1, 0.5))["status"] == "reported"
        assert store.status().damaged == [ids[3]]
    assert "Traceback" not in caplog.text


def test_what_is_damaged_is_not_looked_up_again_for_a_while(store, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 60.0)
    known, broken = store.create(MAIL).id, store.create(MAIL).id
    del store._writer._loaded[broken]
    load, looked_up = event_log.load, []

    def failing_load(connection, identity):
        looked_up.append(identity)
        if identity == broken:
            raise Corrupt("the log must be gapless, but is not")
        return load(connection, identity)

    monkeypatch.setattr(event_log, "load", failing_load)
    for _ in range(2):
        answers = store.perform_many([(broken, Ask())] * 20 + [(known, Ask()), ("unknown", Ask())])
        assert codes(answers) == ["corrupt"] * 20 + [1, "not_found"]
    # Another process may create an unknown one meanwhile.
    assert looked_up == [broken, "unknown", "unknown"]


def test_what_cannot_be_written_for_one_experiment_is_written_for_the_others(store, monkeypatch, caplog):
    ids = [store.create({**MAIL, "seed": seed}).id for seed in range(6)]
    write = Changes.write

    def broken(self):
        write(self)
        if ids[2] in self.touched:
            raise sqlite_error("SQLITE_CORRUPT")

    monkeypatch.setattr(Changes, "write", broken)
    assert codes(store.perform_many([(i, Ask()) for i in ids])) == [1, 1, "corrupt", 1, 1, 1]
    seen = transactions(monkeypatch)
    assert codes(store.perform_many([(i, Tell(1, 0.5)) for i in ids])) == [1, 1, "corrupt", 1, 1, 1]
    # The second time it is refused without a try: the others share their transaction.
    assert [len(items) for items in seen] == [6]
    assert store.status().damaged == [ids[2]]
    assert "Traceback" not in caplog.text
    monkeypatch.undo()
    store._writer.damaged[ids[2]] = store._writer.damaged[ids[2]][0], 0.0
    assert store.perform(ids[2], Ask())["round"] == 1
    assert store.status().damaged == []
    assert all(verdict.ok for verdict in store.verify())


def test_a_commit_that_failed_is_not_tried_again(store, monkeypatch):
    identity = store.create(MAIL).id
    seen = transactions(monkeypatch)

    def lost(_):
        raise sqlite_error("SQLITE_CORRUPT")

    event.listen(store._database.writing, "commit", lost, once=True)
    assert codes(store.perform_many([(identity, Ask()), (identity, Tell(1, 0.5))])) == ["corrupt"] * 2
    assert len(seen) == 1
    assert store.status().damaged == []


def test_reads_that_are_held_up_hold_up_nobody_else(store_url):
    """All connections for reads are in use, as many long exports would have them."""
    with Store.open(store_url) as store:
        identity = store.create(MAIL).id
    with Store.open(store_url) as store:
        token = store.create_token("t", ["read"])
        connections = [store._database.reading.connect() for _ in range(store._database.reading.pool.size())]
        try:
            for connection in connections:
                connection.exec_driver_sql("SELECT 1")
            # The experiment is loaded, the round committed, the token looked up.
            assert store.perform(identity, Ask())["round"] == 1
            assert store.scopes_of(token) == {"read"}
            assert len(store.tokens()) == 1
            store.check_health()
        finally:
            for connection in connections:
                connection.close()
