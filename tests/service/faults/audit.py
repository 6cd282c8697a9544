"""The ledger against the store: nothing acknowledged is lost, doubled or changed, and nothing is invented.

`audit` reads everything over HTTP, after any restart: round rows, events, the experiment itself, `verify`.
Every finding begins with one word: lost, doubled, changed, invented, gap, verify.
"""

import asyncio
from collections import Counter
from typing import Any

from tests.service.faults.ledger import Key, Ledger
from tests.service.faults.wire import fetch, pages

Rows = list[dict[str, Any]]


async def audit(port: int, ledger: Ledger) -> list[str]:
    """Return the ledger's own problems and all that the stored experiments contradict; empty means clean."""
    places = asyncio.Semaphore(4)

    async def one(experiment: str) -> list[str]:
        async with places:
            return await audit_of_one(port, ledger, experiment)

    found = await asyncio.gather(*map(one, ledger.units))
    made = made_against(ledger, await pages(port, "/v1/experiments", ""))
    return [*ledger.problems, *made, *(finding for findings in found for finding in findings)]


def made_against(ledger: Ledger, stored: Rows) -> list[str]:
    """Compare the experiments that were created for keys, which have a name each, with those that are stored."""
    found = []
    ids: dict[str, list[str]] = {}
    for each in stored:
        ids.setdefault(each["name"], []).append(each["id"])
    for name, identity in ledger.made.items():
        known = ids.get(name, [])
        if len(known) > 1:
            found.append(f"doubled: {name!r} is stored {len(known)} times")
        if identity is not None and identity not in known:
            found.append(f"lost: {name!r} was acknowledged as {identity}, but is not stored")
    return found


async def audit_of_one(port: int, ledger: Ledger, experiment: str) -> list[str]:
    """Return what one stored experiment contradicts."""
    path = f"/v1/experiments/{experiment}"
    view = await fetch(port, path)
    if view.status != 200:
        return [f"lost: experiment {experiment} was acknowledged, but GET gives {view.status}"]
    rows = await pages(port, f"{path}/rounds")
    events = await pages(port, f"{path}/events")
    found = rows_against(ledger, experiment, rows)
    found += gaps(ledger.units[experiment], rows, view.body["round"])
    found += events_against(events, rows)
    verified = await fetch(port, f"{path}/verify", patience=120.0)
    if verified.status != 200 or not _all_ok(verified.body):
        found.append(f"verify: {experiment}: {verified.status} {str(verified.body)[:300]}")
    return found


def _all_ok(body: Any) -> bool:
    """Return whether a verify answer (one result, a list, or a page) holds results, all of them fine."""
    results = body.get("items", [body]) if isinstance(body, dict) else body
    return bool(results) and all(result["ok"] is True for result in results)


def rows_against(ledger: Ledger, experiment: str, rows: Rows) -> list[str]:
    """Compare the round rows of one experiment with what its clients sent and were told."""
    found = []
    stored = {Key(experiment, row["round"], str(row["unit"])): row for row in rows}
    if len(stored) != len(rows):
        found.append(f"doubled: {experiment} has {len(rows)} rows for {len(stored)} rounds and units")
    for key, arm in ledger.arms.items():
        if key.experiment != experiment:
            continue
        if key not in stored:
            found.append(f"lost: {key} was asked ({arm!r}), and there is no row")
        elif stored[key]["arm"] != arm:
            found.append(f"changed: {key} was asked as {arm!r}, and is stored as {stored[key]['arm']!r}")
    for key, total in ledger.totals.items():
        if key.experiment != experiment or key not in stored:
            continue
        row = stored[key]
        if row["status"] == "open":
            found.append(f"lost: {key} was told {total!r}, and is open")
        elif row["total"] not in {total, ledger.amending.get(key, total)}:
            found.append(f"changed: {key} was told {total!r}, and is stored as {row['total']!r}, {row['status']}")
    for key, row in stored.items():
        found += _row_against(ledger, key, row)
    return found


def _row_against(ledger: Ledger, key: Key, row: Any) -> list[str]:
    """Compare one row with what was sent for it, and let the ledger see it."""
    found = []
    if row["status"] != "open" and row["total"] not in ledger.sent.get(key, set()):
        found.append(f"invented: {key} is stored as {row['total']!r}, which nobody sent")
    if (row["total"] is None) != (row["status"] in {"open", "missing"}):
        found.append(f"changed: {key} is {row['status']}, with the total {row['total']!r}")
    ledger.saw(key, row)
    return found


def gaps(units: int, rows: Rows, last: int) -> list[str]:
    """Check that rounds run from 1 to the counter with every unit in each, and that only the last is open."""
    found = []
    counts = Counter(row["round"] for row in rows)
    if sorted(counts) != list(range(1, len(counts) + 1)):
        found.append(f"gap: rounds are {sorted(counts)[:5]} ... {sorted(counts)[-5:]}, {len(counts)} of them")
    if any(count != units for count in counts.values()):
        found.append(f"gap: a round has {set(counts.values())} rows, with {units} units")
    if last != len(counts):
        found.append(f"gap: the experiment is in round {last}, and has rows of {len(counts)} rounds")
    still = {row["round"] for row in rows if row["status"] == "open"} - {last}
    if still:
        found.append(f"gap: rounds {sorted(still)[:5]} are open, and {last} is the last")
    return found


def events_against(events: Rows, rows: Rows) -> list[str]:
    """Check that events have no gaps, and that every round was opened once and every total told once."""
    found = []
    numbers = [event["seq"] for event in events]
    # A server that loses things may have lost all of them.
    first = numbers[0] if numbers else 0
    if numbers != list(range(first, first + len(numbers))) or first > 1:
        found.append(f"gap: events are numbered {numbers[:5]} ... {numbers[-5:]}, {len(numbers)} of them")
    opened = Counter(event["round"] for event in events if event["kind"] == "ask")
    told = Counter((event["round"], str(event["unit"])) for event in events if event["kind"] == "tell")
    for what, counts in (("asked", opened), ("told", told)):
        found += [f"doubled: {key} was {what} {count} times" for key, count in counts.items() if count != 1]
    if set(opened) != {row["round"] for row in rows}:
        found.append(f"gap: {len(opened)} rounds were opened by events, {len({r['round'] for r in rows})} have rows")
    if set(told) != {(row["round"], str(row["unit"])) for row in rows if row["status"] != "open"}:
        found.append(f"gap: {len(told)} totals were told by events, and other rows are closed")
    return found
