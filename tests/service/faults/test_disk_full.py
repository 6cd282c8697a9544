"""A disk that is full, or dies: no acknowledgement, 507 or 503, reads work; and all goes on afterwards.

Three ways, none of which needs root: a limit on file sizes lowered on the running process (writes come up
short, then EFBIG), writes answered with ENOSPC, syncs answered with EIO (the last two by the gate).
"""

import asyncio
import errno
import resource
import time
from pathlib import Path

from tests.service.faults.audit import audit
from tests.service.faults.crowd import Crowd
from tests.service.faults.harness import SOAK, progress, standstill, thirty_two
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server
from tests.service.faults.wire import fetch, pages

PATIENCE = 60.0
FAULTS = ("limit", "no space", "no sync")


def break_disk(server: Server, fault: str) -> None:
    """Let no more be written."""
    if fault == "no space":
        server.opened.fail(pwrite64=errno.ENOSPC)
    elif fault == "no sync":
        server.opened.fail(fdatasync=errno.EIO, fsync=errno.EIO)
    else:
        # Half a page: a log that begins anew comes up short there, and one that goes on gets nothing in.
        limit_files(server, 2048)


def mend_disk(server: Server) -> None:
    """Let everything be written again."""
    server.opened.fail()
    limit_files(server, None)


def limit_files(server: Server, size: int | None) -> None:
    """Let no file of the server get longer than this; None: as long as it may."""
    _, hard = resource.prlimit(server.running.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.running.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


async def refused(server: Server, ledger: Ledger, fault: str) -> None:
    """Break the disk, and wait until clients are refused."""
    ledger.refused.clear()
    break_disk(server, fault)
    await told_of(ledger, fault)


async def told_of(ledger: Ledger, fault: str) -> None:
    """Wait until clients are refused because of the disk."""
    begun = time.monotonic()
    while not set(ledger.refused) & {503, 507}:
        await asyncio.sleep(0.01)
        if time.monotonic() - begun > PATIENCE:
            raise RuntimeError(f"a broken disk ({fault}) must be told of, but got {ledger.refused}")


async def health(server: Server, wanted: set[int]) -> bool:
    """Wait until /healthz answers with one of these statuses; it may be some seconds behind."""
    begun = time.monotonic()
    while (await fetch(server.port, "/healthz")).status not in wanted:
        await asyncio.sleep(0.1)
        if time.monotonic() - begun > 10.0:
            return False
    return True


async def broken(server: Server, crowd: Crowd, fault: str) -> list[str]:
    """Break the disk under load, read, and mend it; return what the audit finds after some more load."""
    ledger = crowd.ledger
    crowd.go()
    await progress(ledger, 150)
    await refused(server, ledger, fault)
    if not await standstill(ledger):
        return ["invented: acknowledgements go on on a broken disk"]
    for experiment in list(ledger.units)[:3]:
        view = await fetch(server.port, f"/v1/experiments/{experiment}")
        rows = await pages(server.port, f"/v1/experiments/{experiment}/rounds")
        if view.status != 200 or len(rows) < ledger.closed(experiment):
            return [f"lost: reads must work on a broken disk, but got {view.status} and {len(rows)} rows"]
    if not await health(server, {503, 507}):
        return ["unexpected: /healthz must say that nothing can be written"]
    mend_disk(server)
    await progress(ledger, 150)
    await crowd.quiet()
    found = await audit(server.port, ledger)
    if not await health(server, {200}):
        found.append("unexpected: /healthz must be well again")
    if not set(ledger.refused) <= {409, 503, 507}:
        found.append(f"unexpected: refusals must say full or busy, but got {ledger.refused}")
    return found


async def now_and_then(server: Server, crowd: Crowd) -> list[str]:
    """Let one in 2,500 writes or syncs fail: transactions fail one by one, amid long lists too."""
    crowd.ledger.refused.clear()
    server.opened.fail(every=2500, pwrite64=errno.ENOSPC, fdatasync=errno.EIO)
    crowd.go()
    await progress(crowd.ledger, 6_000 if SOAK else 1_500)
    # How many writes that takes depends on who was quicker, long lists or single totals.
    await told_of(crowd.ledger, "now and then")
    await crowd.quiet()
    mend_disk(server)
    return await audit(server.port, crowd.ledger)


async def one_after_another(server: Server, ledger: Ledger) -> dict[str, list[str]]:
    """Break the disk in every way, then kill and restart the server; return what each audit finds."""
    await server.start()
    crowd = Crowd([server.port], ledger, seed=7)
    try:
        await thirty_two(crowd)
        await crowd.add(wide=1)
        found = {fault: await broken(server, crowd, fault) for fault in FAULTS}
        found["now and then"] = await now_and_then(server, crowd)
        # Killed while syncs fail: transactions may lie in the log, whole but unacknowledged.
        crowd.go()
        await refused(server, ledger, "no sync")
        server.kill()
        await crowd.quiet()
        await server.start()
        return {**found, "afterwards": await audit(server.port, ledger)}
    finally:
        await crowd.end()
        server.kill()


def test_a_broken_disk_acknowledges_nothing_and_loses_nothing(tmp_path: Path) -> None:
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, gated=True)
    found = asyncio.run(one_after_another(server, Ledger()))
    assert found == {fault: [] for fault in (*FAULTS, "now and then", "afterwards")}
