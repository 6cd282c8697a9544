"""Scenarios: clients, a server, faults, and the audit after each; the same for honest and broken servers.

A bounded run is part of every test run. AFTEREFFECT_SOAK=1 makes it long; AFTEREFFECT_KILLS and AFTEREFFECT_LOSSES set
how many kills of a server and losses of a database there are. On two cores a kill takes about 1.5 s, a loss 5 s.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import numpy as np
from tests.service.faults.audit import audit
from tests.service.faults.crowd import WIDTH, Crowd
from tests.service.faults.ledger import Ledger
from tests.service.faults.server import Server

SOAK = os.environ.get("AFTEREFFECT_SOAK", "") not in {"", "0"}
KILLS = int(os.environ.get("AFTEREFFECT_KILLS", "1000" if SOAK else "2"))
LOSSES = int(os.environ.get("AFTEREFFECT_LOSSES", "100" if SOAK else "2"))
GENERATION = 20


async def progress(ledger: Ledger, acknowledgements: int, patience: float = 600.0) -> float:
    """Return after so many more acknowledgements, with the seconds until the first of them."""
    begun, before, first = time.monotonic(), ledger.acknowledged, 0.0
    while ledger.acknowledged < before + acknowledgements:
        await asyncio.sleep(0.002)
        if not first and ledger.acknowledged > before:
            first = time.monotonic() - begun
        if time.monotonic() - begun > patience:
            raise RuntimeError(f"clients must get on, but {ledger.acknowledged - before} answers in {patience} s")
    return first


async def reached(ledger: Ledger, wanted: Callable[[Ledger], bool], patience: float = 600.0) -> None:
    """Return as soon as a ledger is as wanted."""
    begun = time.monotonic()
    while not wanted(ledger):
        await asyncio.sleep(0.005)
        if time.monotonic() - begun > patience:
            raise RuntimeError(f"clients must get on, but in {patience} s a ledger was not as wanted")


async def standstill(ledger: Ledger, seconds: float = 0.5, patience: float = 30.0) -> bool:
    """Return whether acknowledgements end, for so long at least.

    Answers that need nothing new to be stored may still come; each client gets a few of them before it is stuck.
    """
    begun = last = time.monotonic()
    before = ledger.acknowledged
    while time.monotonic() - last < seconds:
        await asyncio.sleep(0.005)
        if ledger.acknowledged > before:
            before, last = ledger.acknowledged, time.monotonic()
        if last - begun > patience:
            return False
    return True


async def thirty_two(crowd: Crowd) -> None:
    """Add 32 clients: 10 owners, 8 and 8 on two shared experiments (one with three units), 4 in bulk, 2 makers."""
    await crowd.add(owners=10, sharers=8, bulk=4, makers=2)
    await crowd.add(sharers=8, units=3)


async def long_lists(crowd: Crowd) -> None:
    """Add 32 clients, one of which sends lists of 2,100 items, and 31 with an experiment each in between."""
    await crowd.add(wide=1)
    await crowd.add(owners=31)


def lists_are_through(ledger: Ledger) -> bool:
    """Say whether a round of every experiment that is played in long lists was told and acknowledged as a whole."""
    wide = [experiment for experiment, units in ledger.units.items() if units == WIDTH]
    return bool(wide) and all(ledger.closed(experiment) for experiment in wide)


def everything_is_tried(ledger: Ledger) -> bool:
    """Say whether these clients did what they are for: contradicted totals, and created experiments by key."""
    made = sum(identity is not None for identity in ledger.made.values())
    return ledger.refused.get(409, 0) > 0 and made > min(KILLS, GENERATION)


def anything(ledger: Ledger) -> bool:
    """Want nothing of a ledger."""
    return True


Clients = Callable[[Crowd], Awaitable[None]]
Wanted = Callable[[Ledger], bool]


async def kills(
    server: Server,
    ledgers: list[Ledger],
    count: int,
    seed: int,
    clients: Clients = thirty_two,
    wanted: Wanted = anything,
) -> list[str]:
    """Kill a server at random moments under 32 clients; return what the first audit with findings found.

    Now and then it is killed again while it starts. Every 20 kills new clients come with new experiments and
    a ledger of their own, appended to `ledgers`; all are audited at the end. Every ledger is then
    as `wanted`.
    """
    rng = np.random.default_rng(seed)
    await server.start()
    try:
        for done in range(0, count, GENERATION):
            ledgers.append(Ledger())
            crowd = Crowd([server.port], ledgers[-1], seed + done)
            await clients(crowd)
            if found := await generation(server, crowd, min(GENERATION, count - done), rng, wanted):
                return found
        return [finding for ledger in ledgers for finding in await audit(server.port, ledger)]
    finally:
        server.kill()


async def generation(
    server: Server, crowd: Crowd, count: int, rng: np.random.Generator, wanted: Wanted = anything
) -> list[str]:
    """Kill a server so many times under one crowd; after that it ends politely (SIGTERM), under load too.

    Before the polite end the ledger has to be as `wanted`: long lists take longer than what the others do meanwhile.
    """
    try:
        for kill in range(count + 1):
            crowd.go()
            await progress(crowd.ledger, 100)
            if kill == count:
                await reached(crowd.ledger, wanted)
            await asyncio.sleep(rng.uniform(0.0, 0.4))
            if kill < count:
                server.kill()
            elif status := server.stop():
                return [f"unexpected: a polite end must have exit status 0, but got {status}"]
            await crowd.quiet()
            if rng.random() < 0.25:
                server.spawn()
                await asyncio.sleep(rng.uniform(0.0, 0.5))
                server.kill()
            await server.start()
            if found := await audit(server.port, crowd.ledger):
                return found
        return []
    finally:
        await crowd.end()


async def plain_load(server: Server, ledger: Ledger, seed: int, word: str) -> list[str]:
    """Run 32 clients without any fault until an audit has findings that begin with this word; return its findings.

    What a client does next is drawn, and who comes first is open: a server that is broken may do well for a while.
    """
    await server.start()
    crowd = Crowd([server.port], ledger, seed)
    found: list[str] = []
    try:
        await thirty_two(crowd)
        for _ in range(20):
            crowd.go()
            await progress(ledger, 100)
            await crowd.quiet()
            found = await audit(server.port, ledger)
            if any(finding.startswith(f"{word}:") for finding in found):
                break
        return found
    finally:
        await crowd.end()
        server.kill()
