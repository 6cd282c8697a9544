"""Backups: taken while writing goes on, whole, restorable to either kind of store."""

import threading
from pathlib import Path

import pytest
from tests.service.playing import play_in

from aftereffect.service.errors import Refused
from aftereffect.service.store.backup import restore_backup
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}


def everything(store: Store) -> list[object]:
    made = store.experiments()["items"]
    return [made, *([store.rounds(one["id"], limit=1000), store.events(one["id"], limit=1000)] for one in made)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_restores_to_either_store_and_goes_on(store, kind, tmp_path, request):
    first, second = store.create(MAIL).id, store.create({**MAIL, "seed": 8}).id
    play_in(store, first, 80)
    play_in(store, second, 5)
    token = store.create_token("t", ["read"])
    store.backup(tmp_path / "copy.db")
    target = f"sqlite:///{tmp_path / 'new.db'}" if kind == "sqlite" else request.getfixturevalue("other_postgres_url")
    restore_backup(tmp_path / "copy.db", target)
    with Store.open(target) as other:
        assert everything(other) == everything(store)
        assert all(verdict.ok for verdict in other.verify())
        assert other.scopes_of(token) == {"read"}
        play_in(store, first, 20)
        play_in(other, first, 20)
        mine, theirs = (each.events(first, after=160, limit=1000)["items"] for each in (store, other))
        assert [event["body"] for event in mine] == [event["body"] for event in theirs]
        assert other.create(MAIL).id not in (first, second)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_backup_is_a_store_that_can_be_opened(store, tmp_path):
    identity = store.create(MAIL).id
    play_in(store, identity, 20)
    store.backup(tmp_path / "copy.db")
    with Store.open(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert everything(copy) == everything(store)


def test_a_backup_taken_under_load_is_a_moment(store, tmp_path):
    identity = store.create(MAIL).id
    play_in(store, identity, 50)
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            play_in(store, identity, 1)

    writer = threading.Thread(target=load)
    writer.start()
    try:
        for i in range(5):
            store.backup(tmp_path / f"copy{i}.db")
    finally:
        stop.set()
        writer.join()
    seen = []
    for i in range(5):
        with Store.open(f"sqlite:///{tmp_path / f'copy{i}.db'}") as copy:
            (verdict,) = copy.verify()
            assert verdict.ok, verdict
            seen.append(verdict.rounds)
    assert seen == sorted(seen)
    assert seen[0] >= 50


def test_nothing_is_overwritten(store, tmp_path):
    store.create(MAIL)
    path = tmp_path / "copy.db"
    path.write_text("my letters")
    with pytest.raises(Refused, match="must not exist yet"):
        store.backup(path)
    assert path.read_text() == "my letters"
    path.unlink()
    store.backup(path)
    taken = tmp_path / "taken.db"
    with Store.open(f"sqlite:///{taken}") as other:
        kept = other.create(MAIL)
        with pytest.raises(Refused, match="in use"):
            restore_backup(path, f"sqlite:///{taken}", wait=0.0)
    with pytest.raises(Refused, match="empty store, but it has experiments"):
        restore_backup(path, f"sqlite:///{taken}")
    with Store.open(f"sqlite:///{taken}") as other:
        assert other.experiment(kept.id) == kept


def test_a_folder_that_is_not_there_is_named(store, tmp_path):
    with pytest.raises(Refused, match="an existing folder"):
        store.backup(tmp_path / "nowhere" / "copy.db")


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 50, None])
def test_what_is_no_backup_is_refused(tmp_path: Path, content):
    source = tmp_path / "copy.db"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(Refused, match="source must be a"):
        restore_backup(source, f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


def test_a_backup_is_not_restored_over_itself(store, tmp_path):
    store.backup(tmp_path / "copy.db")
    with pytest.raises(Refused, match="another file than source"):
        restore_backup(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'copy.db'}")
