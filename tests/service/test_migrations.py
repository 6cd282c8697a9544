"""The tables: made by migrations, equal to the schema, kept when opened again, refused when they are newer."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from aftereffect.service.desk import Desk
from aftereffect.service.errors import Refused
from aftereffect.service.store import migrating, schema
from aftereffect.service.store.places import Place, checked_url


def test_the_migrations_lead_to_the_schema(store_url):
    with Desk.open(store_url) as desk, desk._place.writing.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_opening_again_changes_nothing(store_url):
    with Desk.open(store_url) as desk:
        made = desk.create({"name": "n", "arms": ["a", "b"], "max_delay": 0})
    with Desk.open(store_url) as desk:
        assert desk.experiment(made["id"]) == made
        with desk._place.writing.connect() as connection:
            assert migrating.version(connection) == migrating.NEWEST


def test_the_newest_version_is_the_last_step():
    config = Config()
    config.set_main_option("script_location", str(migrating.STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == migrating.NEWEST


def test_a_store_of_a_newer_release_is_refused_and_left_alone(store_url):
    with Desk.open(store_url) as desk, desk._place.writing.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Refused, match="version 0001 or older, but it is of 9999"):
        Desk.open(store_url)
    place = Place(checked_url(store_url))
    with place.writing.connect() as connection:
        assert migrating.version(connection) == "9999"
    place.close()


def test_an_upgrade_that_fails_leaves_nothing_behind(store_url, monkeypatch):
    whole = migrating._run_steps

    def broken(connection, found):
        whole(connection, found)
        raise RuntimeError("power cut")

    monkeypatch.setattr(migrating, "_run_steps", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        Desk.open(store_url)
    monkeypatch.undo()
    place = Place(checked_url(store_url))
    with place.writing.connect() as connection:
        assert migrating.version(connection) is None
    place.close()
    Desk.open(store_url, wait=0.0).close()
