"""PostgreSQL killed and started again under load: nothing is lost, and writes go on within seconds.

The service itself stays up. While its database is away it acknowledges nothing, says 503 and does not hang.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

from tests.service.faults.audit import audit
from tests.service.faults.crowd import Crowd
from tests.service.faults.harness import GENERATION, LOSSES, progress, standstill, thirty_two
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server
from tests.service.faults.wire import fetch
from tests.service.postgres import kill, running_postgres

# A database that is back is found again within this, on a slow machine too; clients back off in steps of 20 ms.
SECONDS = 30.0


async def losses(database: Any, server: Server, ledgers: list[Ledger], count: int) -> tuple[list[str], float]:
    """Kill and restart the database; return findings, and the longest wait for the first write after it.

    Every 20 losses new clients come with new experiments and a ledger of their own; all are audited at the end.
    """
    await server.start()
    longest = 0.0
    try:
        for done in range(0, count, GENERATION):
            ledgers.append(Ledger())
            crowd = Crowd([server.port], ledgers[-1], seed=4 + done)
            try:
                await thirty_two(crowd)
                for _ in range(min(GENERATION, count - done)):
                    found, waited = await loss(database, server, crowd)
                    longest = max(longest, waited)
                    if found:
                        return found, longest
            finally:
                await crowd.end()
        return [finding for ledger in ledgers for finding in await audit(server.port, ledger)], longest
    finally:
        server.kill()


async def loss(database: Any, server: Server, crowd: Crowd) -> tuple[list[str], float]:
    """Kill and restart the database once; return findings, and the wait for the first write after it."""
    ledger = crowd.ledger
    crowd.go()
    await progress(ledger, 100)
    await asyncio.to_thread(kill, database)
    if not await standstill(ledger):
        return ["invented: acknowledgements go on without a database"], 0.0
    health = await fetch(server.port, "/healthz")
    if health.status != 503:
        return [f"unexpected: /healthz says {health} without a database"], 0.0
    await asyncio.to_thread(database.start)
    begun = time.monotonic()
    await progress(ledger, 1)
    waited = time.monotonic() - begun
    await progress(ledger, 100)
    await crowd.quiet()
    return await audit(server.port, ledger), waited


def test_a_database_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    ledgers: list[Ledger] = []
    with running_postgres() as database:
        server = Server(database.get_uri(), tmp_path)
        found, longest = asyncio.run(losses(database, server, ledgers, LOSSES))
    acknowledged = sum(ledger.acknowledged for ledger in ledgers)
    print(f"{LOSSES} losses, {acknowledged:,} acknowledged writes, resumed within {longest:.1f} s")
    assert found == []
    assert longest < SECONDS
    assert all(ledger.refused[503] > 0 for ledger in ledgers)
    # Only refusals that say so: whatever else a lost database causes would be "unexpected" above.
    assert {status for ledger in ledgers for status in ledger.refused} <= {409, 503}
