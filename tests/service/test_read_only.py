"""A store that can only be read is read, exported, verified and backed up; whatever would change it is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.shell import ROOT

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.sqlite_file import SqliteFile
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}
# Runs commands as a user whom permissions bind: root gives up what lets it write everywhere (CAP_DAC_OVERRIDE, 1 << 1).
VISITOR = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(head, data) == 0
for i in range(2):
    data[i] &= ~(1 << 1)
assert libc.capset(head, data) == 0, ctypes.get_errno()
from tests.service.server import command
for words in json.loads(sys.argv[1]):
    done = command(*words)
    print(json.dumps([done.code, done.out, done.err]))
"""


def visited(*commands: list[str]) -> list[tuple[int, str, str]]:
    """Return exit status and output of each command, run one after the other."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    words = [sys.executable, "-c", VISITOR, json.dumps(commands)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can be locked up by `lock_up`."""
    made = tmp_path / "medium"
    made.mkdir()
    yield made
    made.chmod(0o755)


def lock_up(folder: Path) -> dict[str, bytes]:
    """Let nobody write here any more; return what is there."""
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def filled(folder: Path) -> str:
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:
        identity = str(store.create(MAIL).id)
        store.perform_many([(identity, Ask()), (identity, Tell(1, 0.5))])
    return identity


def test_what_only_reads_works_and_what_writes_is_refused(folder: Path, tmp_path: Path) -> None:
    identity, store = filled(folder), ["--store", str(folder / "store.db")]
    before = lock_up(folder)
    copy = tmp_path / "copy.db"
    status, table, verdict, tokens, backup, ask, init, token = visited(
        ["status", *store, "-f", "json"],
        ["export", *store],
        ["verify", *store],
        ["token", "list", *store],
        ["backup", str(copy), *store],
        ["ask", *store],
        ["init", "other", "--arm", "a", "--arm", "b", "--high", "1", "--max-delay", "1", *store],
        ["token", "create", "till", "--scope", "play", *store],
    )
    assert (status[0], json.loads(status[1])["round"]) == (0, 1)
    assert (table[0], len(table[1].splitlines())) == (0, 2)
    assert verdict[:2] == (0, f"{identity}: ok, rounds: 1\n")
    assert (tokens[0], backup[0]) == (0, 0)
    for refused in (ask, init, token):
        assert (refused[0], refused[1]) == (5, "")
        assert "can only be read, nothing was kept" in refused[2]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with Store.open(f"sqlite:///{copy}") as store:
        assert store.verify()[0].rounds == 1


def test_a_server_does_not_start_on_one(folder: Path) -> None:
    filled(folder)
    lock_up(folder)
    (served,) = visited(["serve", "--port", "0", "--store", str(folder / "store.db")])
    assert served[0] == 5
    assert "folder that can be written to" in served[2]


def test_a_log_that_was_left_behind_is_read_too(folder: Path, tmp_path: Path) -> None:
    """Copied as a killed process leaves it: the second round is in the log alone."""
    identity = filled(folder)
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:
        store.perform_many([(identity, Ask()), (identity, Tell(2, 0.5))])
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert files["store.db-wal"]
    lock_up(folder)
    (verdict,) = visited(["verify", "--store", str(folder / "store.db")])
    assert verdict[:2] == (0, f"{identity}: ok, rounds: 2\n")


def test_a_file_is_taken_for_unchanging_only_while_nobody_can_write(folder: Path) -> None:
    file = folder / "store.db"
    filled(folder)
    reader, writer = SqliteFile(file), SqliteFile(file)
    reader.read_only = True
    assert reader.read_only_uri().endswith("?mode=ro&immutable=1")
    with pytest.raises(Refused, match="in use"):
        writer.lock(0.0)
    reader.release()
    writer.lock(0.0)
    assert reader.read_only_uri().endswith("?mode=ro")
    writer.release()
    (folder / "store.db-wal").write_bytes(b"")
    assert reader.read_only_uri().endswith("&immutable=1")
    (folder / "store.db-shm").write_bytes(b"")
    assert reader.read_only_uri().endswith("?mode=ro")
    (folder / "store.db-shm").unlink()
    (folder / "store.db-wal").write_bytes(b"something")
    assert reader.read_only_uri().endswith("?mode=ro")
    reader.release()
