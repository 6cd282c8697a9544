"""Many clients on one experiment, several servers on one database: one order, no gaps, no locked error."""

import asyncio
from pathlib import Path

from tests.service.faults.audit import audit
from tests.service.faults.crowd import Crowd
from tests.service.faults.harness import SOAK, progress
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server
from tests.service.postgres import running_postgres

ACKNOWLEDGED = 100_000 if SOAK else 1_200


async def together(servers: list[Server], ledger: Ledger, clients: int, acknowledgements: int) -> list[str]:
    """Let clients share one experiment through all servers; return what the audit finds.

    Of several servers the first is killed on the way: the others go on, and it comes back to the same.
    """
    await asyncio.gather(*(server.start() for server in servers))
    crowd = Crowd([server.port for server in servers], ledger, seed=5)
    try:
        await crowd.add(sharers=clients)
        crowd.go()
        await progress(ledger, acknowledgements)
        if servers[1:]:
            servers[0].kill()
            await progress(ledger, acknowledgements // 2)
            await crowd.quiet()
            await servers[0].start()
            crowd.go()
            await progress(ledger, acknowledgements // 2)
        await crowd.quiet()
        return [finding for server in servers for finding in await audit(server.port, ledger)]
    finally:
        await crowd.end()
        for server in servers:
            server.kill()


def test_sixty_four_clients_on_one_experiment(tmp_path: Path) -> None:
    ledger = Ledger()
    server = Server(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    assert asyncio.run(together([server], ledger, 64, ACKNOWLEDGED)) == []
    # Nobody was turned away: a writer that waits is no reason to refuse.
    assert set(ledger.refused) <= {409}
    assert "locked" not in server.log()
    # One total for each round, though many were sent for it.
    assert max(len(totals) for totals in ledger.sent.values()) > 8


def test_two_servers_on_one_database_agree_on_one_experiment(tmp_path: Path) -> None:
    ledger = Ledger()
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with running_postgres() as database:
        servers = [Server(database.get_uri(), folder) for folder in folders]
        assert asyncio.run(together(servers, ledger, 64, ACKNOWLEDGED // 4)) == []
    assert set(ledger.refused) <= {409}
