"""The store, on SQLite and PostgreSQL alike: writes are durable, answered one by one; reads show what is committed."""

import asyncio
import csv
import io
import multiprocessing
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy.exc import OperationalError
from tests.service.playing import play_in

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store import database, event_log, reads, schema
from aftereffect.service.store import store as store_module
from aftereffect.service.store.database import refusal
from aftereffect.service.store.event_log import Changes
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long", "none"], "high": 1.0, "max_delay": 1, "seed": 7}


def test_the_same_seed_plays_the_same_on_a_store_that_is_closed_and_opened(store_url):
    with Store.open(store_url) as store:
        one, two = store.create(MAIL).id, store.create(MAIL).id
        straight = play_in(store, one, 90)
        broken = play_in(store, two, 31)
    with Store.open(store_url) as store:
        broken += play_in(store, two, 40)
    with Store.open(store_url) as store:
        broken += play_in(store, two, 19)
        assert broken == straight
        assert [verdict.ok for verdict in store.verify()] == [True, True]
        first, second = (store.events(i, limit=1000)["items"] for i in (one, two))
        assert [event["body"] for event in first] == [event["body"] for event in second]


def test_a_very_old_report_repeated_is_found_in_the_store(store):
    identity = store.create({**MAIL, "max_delay": 0}).id
    play_in(store, identity, 200)
    assert store.perform(identity, Tell(1, 0.25))["repeated"] is True
    with pytest.raises(Refused, match=r"round 1 was reported as 0\.25"):
        store.perform(identity, Tell(1, 0.5))


def test_an_old_round_is_found_even_if_it_is_still_to_be_written(store):
    identity = store.create({**MAIL, "max_delay": 0}).id
    commands = [command for t in range(1, 201) for command in (Ask(), Tell(t, 0.25))]
    answers = store.perform_many([(identity, command) for command in [*commands, Tell(1, 0.25), Tell(1, 0.5)]])
    assert answers[-2]["repeated"] is True
    assert isinstance(answers[-1], Refused)
    assert store.verify(identity)[0].ok


@pytest.mark.parametrize("identity", ["", "nobody", "x" * 33, "a\0b", "\ud800", "ä"])
def test_an_unknown_experiment_is_not_found_anywhere(store, identity):
    for call in (
        lambda: store.perform(identity, Ask()),
        lambda: store.experiment(identity),
        lambda: store.rounds(identity),
        lambda: store.events(identity),
        lambda: store.series(identity),
        lambda: store.export(identity, "csv"),
        lambda: store.verify(identity),
        lambda: store.experiments(after=identity),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.code == "not_found"


def test_rounds_come_in_pages_by_round_and_unit(store):
    identity = store.create({**MAIL, "units": ["b", "a", "c"]}).id
    for t in range(1, 4):
        store.perform(identity, Ask())
        for unit in ("c", "a", "b"):
            store.perform(identity, Tell(t, 0.5, unit))
    first = store.rounds(identity, limit=4)
    assert [(row["round"], row["unit"]) for row in first["items"]] == [(1, "b"), (1, "a"), (1, "c"), (2, "b")]
    assert first["next"] == "2.0"
    second = store.rounds(identity, after="2.0", limit=2)
    assert [(row["round"], row["unit"]) for row in second["items"]] == [(2, "a"), (2, "c")]
    assert second["next"] == "2.2"
    assert store.rounds(identity, after=2)["next"] is None
    assert len(store.rounds(identity, after=0)["items"]) == 9
    assert store.rounds(identity, after=3)["items"] == []


def test_a_row_is_what_the_answer_said(store):
    identity = store.create(MAIL).id
    asked = store.perform(identity, Ask())
    (row,) = store.rounds(identity)["items"]
    assert {name: asked[name] for name in row} == row
    told = store.perform(identity, Tell(1, 0.1))
    (row,) = store.rounds(identity)["items"]
    assert {name: told[name] for name in row} == row
    assert row["total"] == 0.1
    assert isinstance(row["draw"], bool)


def test_series_are_the_columns_of_the_last_rows(store):
    identity = store.create(MAIL).id
    play_in(store, identity, 12)
    store.perform(identity, Ask())
    rows = store.rounds(identity)["items"]
    whole = store.series(identity)
    for name in ("round", "arm", "total", "status", "washin", "measured", "update", "probability"):
        assert whole[name] == [row[name] for row in rows]
    assert store.series(identity, last=5)["round"] == [9, 10, 11, 12, 13]


def test_exports_hold_every_row(store):
    identity = store.create({**MAIL, "arms": ["=1+1", "long"]}).id
    play_in(store, identity, 20)
    rows = store.rounds(identity)["items"]
    table = pl.read_parquet(io.BytesIO(b"".join(store.export(identity, "parquet"))))
    assert table.to_dicts() == rows
    read = list(csv.DictReader(io.StringIO(b"".join(store.export(identity, "csv")).decode())))
    assert [float(row["total"]) for row in read] == [row["total"] for row in rows]
    assert {row["arm"] for row in read} == {"'=1+1", "long"}


def test_many_threads_on_one_experiment_leave_no_gap(store):
    identity = store.create(MAIL).id
    rounds: list[int] = []
    guard = threading.Lock()

    def client(_: int) -> None:
        for _ in range(10):
            asked = store.perform(identity, Ask())
            try:
                told = store.perform(identity, Tell(asked["round"], 0.5))
            except Refused:
                continue
            if not told["repeated"]:
                with guard:
                    rounds.append(asked["round"])

    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(client, range(16)))
    stored = [row["round"] for row in store.rounds(identity, limit=1000)["items"]]
    assert stored == list(range(1, len(stored) + 1))
    assert sorted(rounds) == stored
    assert store.verify(identity)[0].ok


def test_event_loops_get_the_same_answers(store):
    async def client(i: int) -> tuple[int, list[str]]:
        made = await asyncio.to_thread(store.create, {**MAIL, "seed": i})
        arms = []
        for t in range(1, 6):
            arms.append((await store.aperform(made.id, Ask()))["arm"])
            await store.aperform(made.id, Tell(t, t % 4 / 4))
        with pytest.raises(Refused, match="must be open"):
            await store.aperform(made.id, Tell(99, 0.5))
        items = [(made.id, Ask()), (made.id, Tell(99, 0.5))]
        answer, refused = await store.aperform_many(items)
        assert isinstance(refused, Refused)
        assert await store.aperform_many([]) == []
        return answer["round"], arms

    async def crowd() -> list[tuple[int, list[str]]]:
        return await asyncio.gather(*(client(i) for i in range(32)))

    found = asyncio.run(crowd())
    assert {number for number, _ in found} == {6}
    twin = store.create({**MAIL, "seed": 5}).id
    assert play_in(store, twin, 5) == found[5][1]


def test_a_request_given_up_holds_up_nobody(store):
    identity = store.create(MAIL).id

    async def hasty() -> None:
        task = asyncio.ensure_future(store.aperform(identity, Ask()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(hasty())
    assert store.perform(identity, Ask())["round"] == 1


def test_a_closed_store_refuses(store_url):
    store = Store.open(store_url)
    identity = store.create(MAIL).id
    store.close()
    with pytest.raises(Refused, match="closed"):
        store.perform(identity, Ask())
    store.close()


def _failing(monkeypatch: pytest.MonkeyPatch, failures: list[str]) -> None:
    write = Changes.write

    def broken(self):
        write(self)
        if failures:
            failures.pop()
            raise OperationalError("COMMIT", None, OSError("the disk went away"))

    monkeypatch.setattr(Changes, "write", broken)


def test_what_was_not_kept_is_not_acknowledged_and_is_taken_back(store, monkeypatch):
    one, two = store.create(MAIL).id, store.create(MAIL).id
    play_in(store, one, 3)
    asked = store.perform(two, Ask())
    before = store.experiment(one), store.events(one), store.rounds(one)
    _failing(monkeypatch, ["once"])
    answers = store.perform_many([(one, Ask()), (one, Ask()), (one, Tell(4, 0.5))])
    assert [answer.code for answer in answers] == ["busy"] * 3
    assert (store.experiment(one), store.events(one), store.rounds(one)) == before
    assert store.perform(one, Ask())["round"] == 4
    assert store.perform(two, Ask()) == asked
    assert [verdict.ok for verdict in store.verify()] == [True, True]


def test_views_never_show_what_is_not_committed(store, monkeypatch):
    identity = store.create(MAIL).id
    written, go_on = threading.Event(), threading.Event()
    write = Changes.write

    def slow(self):
        write(self)
        written.set()
        assert go_on.wait(60)

    monkeypatch.setattr(Changes, "write", slow)
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(store.perform, identity, Ask())
        assert written.wait(60)
        # The command has been run in memory and written, not committed; reads do not wait for it.
        assert store.experiment(identity).round == 0
        assert store.rounds(identity)["items"] == []
        assert store.events(identity)["items"] == []
        assert store.series(identity)["round"] == []
        go_on.set()
        assert asking.result()["round"] == 1
    assert store.experiment(identity).round == 1


def test_a_fault_in_one_command_spoils_no_other(store, monkeypatch, caplog):
    one, two = store.create(MAIL).id, store.create(MAIL).id
    whole = event_log.Experiment.do

    def faulty(self, command, at, recalled=None):
        if command == Tell(1, 0.125):
            whole(self, command, at, recalled)
            raise ZeroDivisionError
        return whole(self, command, at, recalled)

    monkeypatch.setattr(event_log.Experiment, "do", faulty)
    commands = [(one, Ask()), (two, Ask()), (one, Tell(1, 0.125)), (one, Tell(1, 0.5)), (two, Tell(1, 1.0))]
    found = [answer.code if isinstance(answer, Refused) else answer["round"] for answer in store.perform_many(commands)]
    assert found == [1, 1, "corrupt", 1, 1]
    assert [row["total"] for row in store.rounds(one)["items"]] == [0.5]
    assert [verdict.ok for verdict in store.verify()] == [True, True]
    assert "ZeroDivisionError" in caplog.text


def test_a_fault_of_the_writer_itself_does_not_end_it(store, monkeypatch, caplog):
    identity = store.create(MAIL).id
    monkeypatch.setattr("aftereffect.service.store.writer.Writer._commit", None)
    with pytest.raises(Refused, match="the service failed: TypeError"):
        store.perform(identity, Ask())
    monkeypatch.undo()
    assert store.perform(identity, Ask())["round"] == 1
    assert "a batch of 1 commands failed" in caplog.text


def test_experiments_beyond_what_fits_in_memory_are_taken_up_again(store):
    store._writer.most_loaded = 2
    made = [store.create({**MAIL, "seed": i}).id for i in range(4)]
    for t in range(1, 6):
        answers = store.perform_many([(identity, Ask()) for identity in made])
        assert [answer["round"] for answer in answers] == [t] * 4
        store.perform_many([(identity, Tell(t, 0.5)) for identity in made])
    assert all(verdict.ok for verdict in store.verify())


def test_many_units_have_a_checkpoint_for_a_quarter_of_them(store):
    identity = store.create({**MAIL, "units": 48, "player": "paper", "horizon": 100}).id
    store.perform(identity, Ask())
    seen = set()
    for unit in range(48):
        told = store.perform(identity, Tell(1, 0.5, str(unit + 1)))
        with store._database.reading.connect() as connection:
            seen.add(connection.exec_driver_sql("SELECT max(seq) FROM checkpoints").scalar())
            loaded = event_log.load(connection, identity).experiment
        again = loaded.do(Tell(1, 0.5, str(unit + 1)), "later").answer
        assert {"experiment": identity, **again} == {**told, "repeated": True}
    assert {after - before for before, after in pairwise(sorted(seen - {None}))} == {12}


def test_checkpoints_are_never_older_than_they_may_be(store, monkeypatch):
    monkeypatch.setattr(event_log, "CHECKPOINT_EVERY", 16)
    identity = store.create(MAIL).id
    for t in range(1, 41):
        store.perform_many([(identity, Ask()), (identity, Tell(t, 0.5))])
        with store._database.reading.connect() as connection:
            seq = connection.exec_driver_sql("SELECT max(seq) FROM checkpoints").scalar() or 0
        assert 2 * t - seq < 16


@pytest.mark.parametrize("token", ["", "ae_", "ae_" + "x" * 43, "\ud800", "ae_\ud800\0"])
def test_a_token_nobody_made_opens_nothing(store, token):
    assert store.scopes_of(token) is None


@pytest.mark.parametrize("scopes", [[], ["write"], "read", None, [1]])
def test_scopes_are_checked(store, scopes):
    with pytest.raises(Refused, match=r"scopes(\[0\])? must"):
        store.create_token("x", scopes)
    assert store.tokens() == []


def test_the_default_clock_is_utc_to_the_millisecond():
    now = store_module.utc_now()
    assert len(now) == len("2026-01-01T00:00:00.000Z")
    assert now.endswith("Z")


def test_errors_of_the_database_in_reads_are_refusals(store, monkeypatch):
    def broken(*_):
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr("aftereffect.service.store.reads.find", broken)
    with pytest.raises(Refused, match="did not answer, try again: gone"):
        store.rounds("x")


def test_a_log_that_is_broken_is_not_gone_on_with(store_url):
    with Store.open(store_url) as store:
        identity = store.create(MAIL).id
        play_in(store, identity, 5)
    with Store.open(store_url) as store:
        with store._database.transaction() as transaction:
            transaction.rows = transaction.connection.exec_driver_sql("DELETE FROM events WHERE seq = 10").rowcount
            # A checkpoint at that event would make it unnecessary.
            transaction.connection.exec_driver_sql("DELETE FROM checkpoints WHERE seq = 10")
        for call in (lambda: store.perform(identity, Ask()), lambda: store.experiment(identity)):
            with pytest.raises(Corrupt, match="must end at event 10"):
                call()


@pytest.mark.parametrize(
    ("name", "words"),
    [("SQLITE_FULL", "nothing was kept"), ("SQLITE_IOERR_FSYNC", "not known whether this was kept")],
)
def test_what_was_written_but_not_synced_may_be_there_after_all(name, words):
    cause = sqlite3.OperationalError("disk trouble")
    cause.sqlite_errorname = name
    found = refusal(OperationalError("COMMIT", None, cause))
    assert (found.code, words in found.detail) == ("full", True)


# The parts: hashes, addresses, connections, cursors.


@pytest.mark.parametrize("changed", [
    ("x", 5, "tell", 3, "u", "{}", "now"),
    ("p", 6, "tell", 3, "u", "{}", "now"),
    ("p", 5, "ask", 3, "u", "{}", "now"),
    ("p", 5, "tell", None, "u", "{}", "now"),
    ("p", 5, "tell", 3, None, "{}", "now"),
    ("p", 5, "tell", 3, "u", '{"a":1}', "now"),
    ("p", 5, "tell", 3, "u", "{}", "then"),
    ("p5", 5, "tell", 3, "u", "{}", "now"),
])
def test_every_part_of_an_event_is_in_its_hash(changed):
    assert event_log.next_hash(*changed) != event_log.next_hash("p", 5, "tell", 3, "u", "{}", "now")


def test_a_view_is_made_again_only_after_a_change(store, monkeypatch):
    one, loads, load = store.create(MAIL).id, [], event_log.load
    monkeypatch.setattr(event_log, "load", lambda *given: loads.append(given) or load(*given))
    assert [store.experiment(one).round for _ in range(3)] == [0, 0, 0]
    assert (store.learned(one).totals, store.learned(one).totals, len(loads)) == (0, 0, 2)
    store.perform_many([(one, Ask()), (one, Tell(1, 0.5)), (one, Ask()), (one, Tell(2, 0.5))])
    assert [store.experiment(one).counts["reports"] for _ in range(3)] == [2, 2, 2]
    assert (store.learned(one).totals, store.learned(one).totals, len(loads)) == (2, 2, 4)
    with pytest.raises(Refused, match="there is no experiment"):
        store.experiment("nothing")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="folder that can be written to"):
        Store.open(f"sqlite:///{tmp_path}/nowhere/store.db")


@pytest.mark.parametrize("address", ["mysql://me:hunter2@x/y", "sqlite://", "sqlite:///:memory:", "sqlite:///a?mode=ro"])
def test_addresses_that_are_no_store_are_refused(address):
    with pytest.raises(Refused, match="store must be") as refused:
        database.checked_url(address)
    assert "hunter2" not in refused.value.detail


def test_sqlite_syncs_every_commit_and_only_the_writer_moves_the_log(sqlite_url):
    file, log = Path(sqlite_url.removeprefix("sqlite:///")), Path(sqlite_url.removeprefix("sqlite:///") + "-wal")
    place = database.Database(sqlite_url)
    schema.upgrade(place.writing)
    with place.writing.connect() as connection, place.reading.connect() as reading:
        names = ("journal_mode", "synchronous", "wal_autocheckpoint")
        assert [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names] == ["wal", 2, 0]
        reading.execute(schema.versions.select())
    before = file.read_bytes(), log.read_bytes()
    assert before[1]
    # Whoever closes a SQLite file last moves its log, unless he can only read.
    place.writing.dispose()
    place.reading.dispose()
    assert (file.read_bytes(), log.read_bytes()) == before
    place.close()


def test_the_reading_connections_cannot_write(sqlite_url):
    with (
        Store.open(sqlite_url) as store,
        store._database.reading.connect() as connection,
        pytest.raises(OperationalError, match="readonly"),
    ):
        connection.exec_driver_sql("DELETE FROM experiments")


@pytest.mark.parametrize("after", ["x", "1.x", "-1", "1.", ".1", "1.2.3", "²", True, 2**63, "1.9999999999", 1.5])
def test_cursors_that_are_none_are_refused(after):
    if after in ("1.", 1.5):
        # An empty unit reads as the whole round, a float as ROUND.UNIT.
        assert reads.read_cursor(after)[0] == 1
        return
    with pytest.raises(Refused, match="after must be ROUND or ROUND"):
        reads.read_cursor(after)


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
