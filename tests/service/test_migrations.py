"""The tables: kept when opened again, upgraded step by step, refused when they are newer or somebody else's."""

import sqlite3
from contextlib import closing

import psycopg
import pytest
import sqlalchemy

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store import schema
from aftereffect.service.store.backup import backup, restore_backup
from aftereffect.service.store.database import Database
from aftereffect.service.store.store import Store


def test_opening_again_changes_nothing(store_url):
    with Store.open(store_url) as store:
        made = store.create({"name": "n", "arms": ["a", "b"], "high": 1.0, "max_delay": 0})
    with Store.open(store_url) as store:
        assert store.experiment(made.id) == made
        with store._database.writing.connect() as connection:
            assert schema.version(connection) == "0001"


def test_a_store_of_an_earlier_version_is_upgraded_step_by_step_and_keeps_its_record(store_url, monkeypatch):
    with Store.open(store_url) as store:
        one = store.create({"name": "n", "arms": ["a", "b"], "high": 1.0, "max_delay": 1, "seed": 3}).id
        for number in range(1, 20):
            store.perform_many([(one, Ask()), (one, Tell(number, 0.5))])
    statements = ["CREATE TABLE pets (name TEXT)", "INSERT INTO pets VALUES ('cat')", "UPDATE pets SET name = 'dog'"]
    done = []
    for count in (2, 3, 3):
        steps = tuple(lambda at, words=words: done.append(at.exec_driver_sql(words)) for words in statements[:count])
        monkeypatch.setattr(schema, "STEPS", steps)
        with Store.open(store_url) as store:
            with store._database.writing.connect() as connection:
                assert connection.exec_driver_sql("SELECT name FROM pets").scalar() == ("cat" if count == 2 else "dog")
                assert schema.version(connection) == f"000{count + 1}"
            assert (store.verify()[0].ok, store.experiment(one).round, len(done)) == (True, 19, count)


def test_a_step_that_fails_leaves_the_store_as_it_was(store_url, monkeypatch):
    Store.open(store_url).close()

    def broken(connection):
        connection.exec_driver_sql("CREATE TABLE pets (name TEXT)")
        raise RuntimeError("power cut")

    monkeypatch.setattr(schema, "STEPS", (broken,))
    with pytest.raises(RuntimeError, match="power cut"):
        Store.open(store_url)
    monkeypatch.undo()
    with Store.open(store_url) as store, store._database.writing.connect() as connection:
        assert schema.version(connection) == "0001"
        assert "pets" not in sqlalchemy.inspect(connection).get_table_names()


def test_a_store_of_a_newer_release_is_refused_and_left_alone(store_url):
    with Store.open(store_url) as store, store._database.transaction() as transaction:
        transaction.connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        transaction.rows = 1
    with pytest.raises(Refused, match="version 0001 or older, but it is of 9999"):
        Store.open(store_url)
    place = Database(store_url)
    with place.writing.connect() as connection:
        assert schema.version(connection) == "9999"
    place.close()


def test_an_upgrade_that_fails_leaves_nothing_behind(store_url, monkeypatch):
    whole = schema.metadata.create_all

    def broken(connection):
        whole(connection)
        raise RuntimeError("power cut")

    monkeypatch.setattr(schema.metadata, "create_all", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        Store.open(store_url)
    monkeypatch.undo()
    place = Database(store_url)
    with place.writing.connect() as connection:
        assert schema.version(connection) is None
    place.close()
    Store.open(store_url, wait=0.0).close()


LETTERS = "CREATE TABLE letters (words TEXT); INSERT INTO letters VALUES ('dear reader');"
# Another program that numbers its own versions, and by chance as this service does.
NUMBERED = "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('0001');"


@pytest.mark.parametrize("script", [LETTERS, NUMBERED, LETTERS + NUMBERED, "CREATE TABLE experiments (id);"])
@pytest.mark.parametrize("log", ["DELETE", "WAL"])
def test_somebody_elses_file_is_refused_and_left_as_it_is(tmp_path, script, log):
    file = tmp_path / "letters.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode={log}")
        connection.executescript(script)
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.backup(tmp_path / "copy.db")
    before, beside = file.read_bytes(), sorted(path.name for path in tmp_path.iterdir())
    place = Database(str(file))
    rule = r"store must be a store of this service or an empty database, but '.*letters\.db' has other tables"
    for act in (
        lambda: Store.open(f"sqlite:///{file}"),
        lambda: restore_backup(tmp_path / "copy.db", f"sqlite:///{file}"),
        lambda: backup(place, tmp_path / "letters_copy.db"),
    ):
        with pytest.raises(Refused, match=rule):
            act()
        assert file.read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir()) == beside


def test_somebody_elses_database_is_refused_and_left_as_it_is(fresh_postgres_url):
    with psycopg.connect(fresh_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE letters (words TEXT)")
        with pytest.raises(Refused, match=r"but 'fresh_.*' has other tables \(letters\)"):
            Store.open(fresh_postgres_url)
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert found == [("letters",)]


def test_tables_that_are_only_in_the_log_are_seen_too(tmp_path):
    file = tmp_path / "letters.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(LETTERS)
        with pytest.raises(Refused, match="has other tables"):
            Store.open(f"sqlite:///{file}")
        found = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert found == [("letters",)]
