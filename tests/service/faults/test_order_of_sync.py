"""The log is synced before the answer leaves: while syncs are held back, nothing is acknowledged.

The gate stops every fdatasync and fsync of the server before the kernel carries it out. What is shown: no
answer to a write comes while they are held; at that moment the write-ahead log already holds the whole
transaction (a copy of the files opens with the round in it); the answer comes once they are let go. A
server that leaves the sync to the operating system is told apart by the same test.
"""

import asyncio
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from tests.service.faults.crowd import ARMS
from tests.service.faults.gate import Gate
from tests.service.faults.server import Server
from tests.service.faults.wire import Answer, Connection

MARK = 0.123456789
# An answer that does not wait for the sync is there within a fraction of this after the sync was asked for.
HELD = 0.2
PATIENCE = 60.0


async def stuck(request: asyncio.Task[Answer], gate: Gate) -> bool:
    """Wait until a request is answered, or a sync is held and no answer comes; return whether it is the latter."""
    until = time.monotonic() + PATIENCE
    while not (request.done() or gate.waiting):
        if time.monotonic() > until:
            raise RuntimeError("a request must be answered, or wait for a sync, but neither happened")
        await asyncio.sleep(0.005)
    done, _ = await asyncio.wait([request], timeout=HELD)
    return not done


async def write_while_held(server: Server, folder: Path) -> tuple[bool, list[str], list[Answer]]:
    """Ask and tell while syncs are held.

    Return whether any answer came before the release, files whose sync was held, and the answers after it.
    """
    await server.start()
    gate = server.opened
    connection = Connection(server.port)
    settings: dict[str, Any] = {"name": "order", "arms": ARMS, "low": 0.0, "high": 1.0, "max_delay": 1}
    created = await connection.call("POST", "/v1/experiments", settings)
    path = f"/v1/experiments/{created.body['id']}"
    early, held, answers = False, [], []
    for method, rest, body in (("POST", "/ask", None), ("PUT", "/rounds/1", {"total": MARK})):
        begun = time.monotonic()
        gate.hold()
        request = asyncio.create_task(connection.call(method, path + rest, body))
        waits = await stuck(request, gate)
        early = early or not waits
        if waits:
            held += [Path(call.path).name for call in gate.calls if call.at > begun and call.name != "pwrite64"]
            if method == "PUT":
                for file in folder.glob("store.db*"):
                    shutil.copyfile(file, folder / file.name.replace("store", "seen"))
        gate.release()
        answers.append(await request)
    connection.close()
    server.kill()
    return early, held, answers


def test_no_answer_leaves_before_the_log_is_synced(tmp_path: Path) -> None:
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, gated=True)
    early, held, answers = asyncio.run(write_while_held(server, tmp_path))
    assert not early
    assert held == ["store.db-wal", "store.db-wal"]
    assert [answer.status for answer in answers] == [200, 200]
    # What was being synced is the transaction itself: all of it was written before the sync began.
    with sqlite3.connect(tmp_path / "seen.db") as seen:
        assert seen.execute("SELECT total FROM rounds").fetchall() == [(MARK,)]
    seen.close()


def test_a_server_that_leaves_the_sync_for_later_is_caught(tmp_path: Path) -> None:
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, variant="syncs_later", gated=True)
    early, held, _ = asyncio.run(write_while_held(server, tmp_path))
    assert early
    assert held == []
