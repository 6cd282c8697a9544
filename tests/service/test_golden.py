"""The golden store, as an earlier version has written it: this version opens it, verifies it and goes on with it."""

import gzip
import json
from pathlib import Path

import pytest
from tests.service.golden.write import BASE, FUTURE, STORE, go_on

from aftereffect.service.experiment.commands import KINDS
from aftereffect.service.messages import Reason
from aftereffect.service.store.backup import restore_backup
from aftereffect.service.store.store import Store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(gzip.decompress(STORE.read_bytes()))
    return copy


def test_it_is_verified_and_has_every_kind_of_event_and_round(file: Path) -> None:
    with Store.open(f"sqlite:///{file}") as store:
        assert [verdict.finding for verdict in store.verify()] == [None] * 11
        ids = [one["id"] for one in store.experiments()["items"]]
        events = [event for id in ids for event in store.events(id, limit=1000)["items"]]
        rows = [row for id in ids for row in store.rounds(id, limit=1000)["items"]]
        assert {event["kind"] for event in events} == KINDS.keys()
        assert {row["reason"] for row in rows} == {*Reason.__args__}
        assert {row["status"] for row in rows} == {"reported", "missing", "void", "clipped"}
        assert {store.experiment(id).player for id in ids} == {"advised", "model", "paper"}
        assert store.perform(ids[1], KINDS["ask"]())["why"]
        assert [len(store.tokens()), len(store.reminders())] == [1, 2]
        # Asked again with its key, a creation is answered as it was.
        assert store.create({"name": "Mailings", "seed": 1, **BASE}, key="golden").id == ids[0]


def test_its_experiments_go_on_as_in_the_version_that_wrote_it(file: Path) -> None:
    assert go_on(file) == json.loads(FUTURE.read_text(encoding="utf-8"))
    with Store.open(f"sqlite:///{file}") as store:
        assert all(verdict.ok for verdict in store.verify())


def test_it_is_restored_into_postgresql(file: Path, fresh_postgres_url: str) -> None:
    restore_backup(file, fresh_postgres_url)
    with Store.open(fresh_postgres_url) as store:
        assert [verdict.finding for verdict in store.verify()] == [None] * 11
