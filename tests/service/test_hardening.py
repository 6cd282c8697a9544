"""Against those who mean harm: slow patterns, other users' files, heads and forms without end, names, file modes."""

import asyncio
import contextlib
import csv
import io
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.service.calling import api
from tests.service.pages import made, post

from aftereffect.service.api.body import parse
from aftereffect.service.dashboard.auth import safe_path
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.local import open_local
from aftereffect.service.settings import days
from aftereffect.service.store import backup, sqlite_file
from aftereffect.service.store.backup import restore_backup
from aftereffect.service.store.sqlite_file import SqliteFile, holder, holder_path
from aftereffect.service.store.store import Store

SOON = 20.0
"""Seconds for what takes milliseconds; what these tests guard against took minutes or more."""


@contextlib.contextmanager
def quick() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SOON


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_place_to_go_on_to_is_read_in_linear_time_and_short(tmp_path):
    with quick():
        assert safe_path("/" + "a" * 499 + "!") == safe_path("/" + "a/" * 200 + "!") == "/"
    longest = "/" + "a" * 499
    assert (safe_path(longest), safe_path(longest + "a"), safe_path("/a//b"), safe_path("/a/b/")) == (
        longest, "/", "/", "/a/b/"
    )
    with api(tmp_path, access="required") as guarded:
        assert guarded("GET", "/login", params={"next": longest}).status_code == 200
        assert guarded("GET", "/login", params={"next": longest + "a"}).status_code == 422
        assert guarded("GET", "/experiments/" + "a" * 600).headers["location"] == "/login?next=%2F"
        token = guarded.store.create_token("reader", ["read"])
        assert post(guarded, "/login", {"token": token, "next": longest}).headers["location"] == longest
        assert post(guarded, "/login", {"token": token, "next": longest + "a"}).headers["location"] == "/"


def test_the_file_that_names_the_holder_is_its_owners_alone_and_a_strangers_is_not_believed(tmp_path, monkeypatch):
    database = tmp_path / "store.db"
    holder_path(database).touch(mode=0o644)
    lock = SqliteFile(database)
    lock.lock(0.0, "http://127.0.0.1:1")
    assert mode(holder_path(database)) == 0o600
    assert holder(database) == {"pid": os.getpid(), "address": "http://127.0.0.1:1"}
    stranger = os.geteuid() + 4711
    monkeypatch.setattr(sqlite_file, "owner", lambda file: stranger)
    assert holder(database) == {"pid": None, "address": None}
    with pytest.raises(Refused, match="in use by another process") as refused:
        open_local(str(database), "secret", wait=0.0)
    assert (refused.value.code, refused.value.extra["address"]) == ("busy", None)
    lock.release()


def test_a_file_that_names_the_holder_and_is_a_link_is_not_followed(tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("dear reader")
    database = tmp_path / "store.db"
    holder_path(database).symlink_to(letter)
    with Store.open(f"sqlite:///{database}", address="http://127.0.0.1:1"):
        assert holder(database) == {"pid": os.getpid(), "address": "http://127.0.0.1:1"}
    assert letter.read_text() == "dear reader"
    assert holder(database) is None


def test_a_key_that_comes_twice_among_many_is_found_at_once():
    keys = ",".join(f'"{i}":0' for i in range(60_000))
    with quick(), pytest.raises(Refused, match="has '59999' more than once"):
        parse(f'{{{keys},"59999":1}}'.encode())


@pytest.mark.parametrize("words", [" " * 50_000 + "!", "a" * 50_000 + "!", "1 " + "s" * 97 + "!", "1 day" + " " * 96])
def test_words_for_a_length_of_time_are_read_in_no_time(words):
    with quick(), pytest.raises(ValueError, match="must be a number of days or words"):
        days(words)
    assert (days(" an hour "), days("Week"), days("2days")) == (1 / 24, 7.0, 2.0)


def test_a_slow_form_is_refused_and_a_strangers_is_not_even_read(tmp_path):
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://127.0.0.1:8000"}
    read: list[bytes] = []

    async def dripping():
        read.append(b"t")
        yield b"t"
        await asyncio.sleep(60)
        yield b"=1"

    with api(tmp_path, access="required", body_seconds=0.2) as guarded, quick():
        path = made(guarded)
        for place in (f"{path}/tell", f"{path}/pause", "/experiments/new", "/experiments/plan"):
            assert guarded("POST", place, content=dripping(), headers=kind).headers["location"].startswith("/login")
        foreign = {**kind, "Origin": "http://elsewhere.example"}
        assert guarded("POST", "/login", content=dripping(), headers=foreign).status_code == 403
        player = {**kind, "Cookie": f"aftereffect_token={guarded.store.create_token('till', ['play'])}"}
        assert guarded("POST", f"{path}/pause", content=dripping(), headers=player).status_code == 403
        assert read == []
        slow = guarded("POST", "/login", content=dripping(), headers=kind)
        assert (slow.status_code, "within 0.2 seconds" in slow.text, read) == (408, True, [b"t"])


@pytest.mark.parametrize(("bound", "host", "status"), [
    ("0.0.0.0", "127.0.0.1:8000", 200), ("0.0.0.0", "localhost", 200), ("0.0.0.0", "[::1]:8000", 200),
    ("10.1.2.3", "10.1.2.3:8000", 200), ("10.1.2.3", "shop.example", 200), ("10.1.2.3", "evil.example", 403),
    ("0.0.0.0", "10.1.2.3", 403), ("0.0.0.0", "0.0.0.0", 403), ("127.0.0.1", "other.example:80", 200),
    ("127.0.0.1", "evil.example", 403),
])
def test_beside_the_names_given_the_machines_own_address_is_answered(tmp_path, bound, host, status):
    with api(tmp_path, host=bound, allowed_hosts="shop.example, Other.example") as guarded:
        assert guarded("GET", "/openapi.json", headers={"host": host}).status_code == status


def test_behind_tls_the_cookie_is_secure(tmp_path):
    with api(tmp_path, access="required", allowed_hosts="shop.example") as guarded:
        fields = {"token": guarded.store.create_token("reader", ["read"])}
        for scheme, secure in (("http", False), ("https", True)):
            sent = {"Host": "shop.example", "Origin": f"{scheme}://shop.example"}
            cookie = post(guarded, "/login", fields, headers=sent).headers["set-cookie"].lower()
            assert ("; secure" in cookie) == secure


def test_backups_and_restored_stores_are_their_owners_alone(store, tmp_path):
    before = os.umask(0)
    try:
        store.backup(tmp_path / "copy.db")
        restore_backup(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'new.db'}")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("copy.db", "new.db")] == [0o600, 0o600]
    with contextlib.closing(sqlite3.connect(tmp_path / "new.db")) as found:
        assert found.execute("SELECT count(*) FROM experiments").fetchone() == (0,)


def test_a_new_store_is_its_owners_alone_and_one_that_is_there_stays_as_it_is(tmp_path):
    before, file = os.umask(0), tmp_path / "store.db"
    try:
        for wanted in (0o600, 0o640):
            with Store.open(f"sqlite:///{file}") as store:
                store.create({"name": "n", "arms": ["a", "b"], "high": 1.0, "max_delay": 0})
                assert {path.name: mode(path) for path in tmp_path.iterdir()} == {
                    "store.db": wanted, "store.db-wal": wanted, "store.db-shm": wanted, "store.db.holder": 0o600
                }
            file.chmod(0o640)
    finally:
        os.umask(before)


def test_a_planted_link_is_not_written_through(sqlite_url, tmp_path, monkeypatch):
    letter, planted = tmp_path / "letter.txt", tmp_path / ".copy.db.guessed.tmp"
    letter.write_text("dear reader")
    planted.symlink_to(letter)
    monkeypatch.setattr(backup.secrets, "token_hex", lambda size: "guessed")
    with Store.open(sqlite_url) as store, pytest.raises(Refused, match="could not be written"):
        store.backup(tmp_path / "copy.db")
    assert letter.read_text() == "dear reader"
    assert not (tmp_path / "copy.db").exists()


def test_names_in_a_csv_file_are_quoted_and_no_formulas(sqlite_url):
    with Store.open(sqlite_url) as store:
        made_of = {"name": "a", "arms": ["=1+1", '@x "y"'], "units": ["-2", "north"], "high": 1.0, "max_delay": 0}
        identity = store.create(made_of).id
        store.perform_many([(identity, Ask()), (identity, Tell(1, 0.25, "-2")), (identity, Tell(1, None, "north"))])
        data = b"".join(store.export(identity, "csv"))
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert [row["unit"] for row in rows] == ["'-2", "north"]
    assert {row["arm"] for row in rows} <= {"'=1+1", "'@x \"y\""}
    assert data.decode().splitlines()[1].startswith('1,"\'-2","\'')
    # Numbers are no text, and what is missing is still missing to a program.
    assert pl.read_csv(data)["total"].to_list() == [0.25, None]
