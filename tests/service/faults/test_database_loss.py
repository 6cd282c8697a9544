"""PostgreSQL killed and started again under load: nothing is lost, and writes go on within seconds.

The service itself stays up. While its database is away it acknowledges nothing, says 503 and does not hang.
"""

import asyncio
import time
from pathlib import Path

from tests.service.faults.audit import audit
from tests.service.faults.cluster import Cluster
from tests.service.faults.crowd import Crowd
from tests.service.faults.harness import SOAK, progress, standstill, thirty_two
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server
from tests.service.faults.wire import fetch

LOSSES = 20 if SOAK else 2
# A database that is back is found again within this, on a slow machine too; clients back off in steps of 20 ms.
SECONDS = 30.0


async def losses(cluster: Cluster, server: Server, ledger: Ledger, count: int) -> tuple[list[str], float]:
    """Kill and restart the database; return findings, and the longest wait for the first write after it."""
    await server.start()
    crowd = Crowd([server.port], ledger, seed=4)
    longest = 0.0
    try:
        await thirty_two(crowd)
        for _ in range(count):
            crowd.go()
            await progress(ledger, 100)
            await asyncio.to_thread(cluster.kill)
            if not await standstill(ledger):
                return ["invented: acknowledgements go on without a database"], longest
            health = await fetch(server.port, "/healthz")
            if health.status != 503:
                return [f"unexpected: /healthz says {health} without a database"], longest
            await asyncio.to_thread(cluster.start)
            begun = time.monotonic()
            await progress(ledger, 1)
            longest = max(longest, time.monotonic() - begun)
            await progress(ledger, 100)
            await crowd.quiet()
            if found := await audit(server.port, ledger):
                return found, longest
        return [], longest
    finally:
        await crowd.end()
        server.kill()


def test_a_database_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    ledger = Ledger()
    with Cluster() as cluster:
        server = Server(cluster.url, tmp_path)
        found, longest = asyncio.run(losses(cluster, server, ledger, LOSSES))
    assert found == []
    assert longest < SECONDS
    assert ledger.refused[503] > 0
    # Only refusals that say so: whatever else a lost database causes would be "unexpected" above.
    assert set(ledger.refused) <= {409, 503}
