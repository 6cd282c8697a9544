"""The decision service beside what it is measured by, in one run: `python benchmarks/service.py [--quick]`.

- a FastAPI app that does nothing, 32 clients: the most that requests through that framework can be;
- ask and tell, durable, 32 clients, each in its own experiment, on SQLite and on PostgreSQL;
- bulk ask and tell on SQLite, in rounds (one ask and one tell) a second, of many experiments with one unit each, and of
  some with 50 units each, counted in rounds of units;
- recovery: a store with a million rounds, killed under load; seconds from the start of a new process to its
  first acknowledged write, beside the start on an empty store, most of which is Python's.

Servers and the load each have a process of their own. Measures take turns, repeat by repeat, so that a slow
minute of the machine hits all of them; of each the best repeat counts, of recoveries the worst. Ratios
within a run are what to look at.
"""

import argparse
import json
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import report
from rich.console import Console
from rich.table import Table
from service_hosts import FILL, NOOP, SERVICE, Host, hosted, load, postgres, python

OUT = Path(__file__).resolve().parent / "out" / "service.json"
CLIENTS = 32
Found = dict[str, dict[str, float]]


class Sizes(NamedTuple):
    """How much is done.

    seconds: of load. bulk: clients, experiments of each; units: the same for experiments of 50 units.
    stored: experiments, rounds of each, more of one.
    """

    repeats: int
    seconds: float
    bulk: tuple[int, int]
    units: tuple[int, int]
    stored: tuple[int, int, int]


FULL = Sizes(3, 10.0, (2, 2000), (2, 40), (1000, 900, 100_000))
QUICK = Sizes(1, 0.5, (2, 20), (2, 2), (4, 20, 50))


def better(found: Found, name: str, sample: dict[str, float]) -> None:
    """Keep the sample with more requests a second."""
    sample["requests_per_second"] = sample["requests"] / sample["seconds"]
    sample["rounds_per_second"] = sample["rounds"] / sample["seconds"]
    if name not in found or sample["requests_per_second"] > found[name]["requests_per_second"]:
        found[name] = sample


def rates(sizes: Sizes, console: Console) -> Found:
    """Measure all loads in turns."""
    found: Found = {}
    with tempfile.TemporaryDirectory() as folder, postgres() as database:
        file = f"sqlite:///{folder}/rates.db"
        with hosted(NOOP) as noop, hosted(SERVICE, file) as sqlite, hosted(SERVICE, database) as shared:
            for repeat in range(sizes.repeats):
                console.print(f"repeat {repeat + 1} of {sizes.repeats}", style="dim")
                better(found, "noop", load("noop", noop.port, CLIENTS, sizes.seconds))
                better(found, "sqlite", load("rounds", sqlite.port, CLIENTS, sizes.seconds))
                better(found, "postgres", load("rounds", shared.port, CLIENTS, sizes.seconds))
                for kind, (clients, each) in {"bulk": sizes.bulk, "units": sizes.units}.items():
                    better(found, kind, load(kind, sqlite.port, clients, sizes.seconds, each))
    return found


def killed_under_load(host: Host, seconds: float) -> None:
    """Kill a server while clients write."""

    def write() -> None:
        try:
            created = host.call(
                "POST", "/v1/experiments", {"name": "last", "arms": ["a", "b"], "max_delay": 1}
            )
            path = f"/v1/experiments/{created['id']}"
            while True:
                number = host.call("POST", f"{path}/ask")["round"]
                host.call("PUT", f"{path}/rounds/{number}", {"total": 0.5})
        except OSError:
            # The server is gone, as it was meant to be.
            return

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(seconds)
    host.end(signal.SIGKILL)
    for writer in writers:
        writer.join()


def recovery(sizes: Sizes, console: Console) -> dict[str, float]:
    """Fill a store, kill its server under load, and time the next start to its first acknowledged write."""
    experiments, rounds, further = sizes.stored
    with tempfile.TemporaryDirectory() as folder:
        empty, full = f"sqlite:///{folder}/empty.db", f"sqlite:///{folder}/full.db"
        console.print(f"storing {experiments * rounds + further:,} rounds", style="dim")
        begun = time.perf_counter()
        longest = python(FILL, full, str(experiments), str(rounds), str(further))
        filling = time.perf_counter() - begun
        bytes_stored = sum(file.stat().st_size for file in Path(folder).glob("full.db*"))
        took: dict[str, list[float]] = {"empty": [], "healthy": [], "writing": []}
        for _ in range(sizes.repeats):
            with hosted(SERVICE, empty) as host:
                took["empty"].append(host.seconds)
            killed_under_load(Host(SERVICE, full), min(2.0, sizes.seconds))
            with hosted(SERVICE, full) as host:
                took["healthy"].append(host.seconds)
                number = host.call("POST", f"/v1/experiments/{longest}/ask")["round"]
                host.call("PUT", f"/v1/experiments/{longest}/rounds/{number}", {"total": 0.5})
                took["writing"].append(time.perf_counter() - host.begun)
        # The slowest counts: a recovery is not chosen.
        worst = {f"{name}_seconds": max(seconds) for name, seconds in took.items()}
        stored = experiments * rounds + further
        speed = {"bytes_a_round": bytes_stored / stored, "filled_per_second": stored / filling}
        return {**worst, "rounds": stored, **speed}


def table(found: Found, back: dict[str, float], facts: dict[str, Any], sizes: Sizes) -> Table:
    """Return what was asked beside what was measured."""
    title = (
        f"{facts['cpu']}, {facts['cores']} cores{'; too short a run to judge by' if sizes == QUICK else ''}"
    )
    shown = Table(title=title, caption="rates are per second, times in seconds")
    for column in ("measure", "asked", "measured", "median ms", "p99 ms", ""):
        shown.add_column(column, justify="left" if column in {"measure", ""} else "right")
    noop = found["noop"]["requests_per_second"]
    rows = (
        ("FastAPI no-op, requests", None, found["noop"], "requests_per_second"),
        ("ask and tell on SQLite, requests", 0.6 * noop, found["sqlite"], "requests_per_second"),
        ("ask and tell on PostgreSQL, reports", 500.0, found["postgres"], "rounds_per_second"),
        ("bulk on SQLite, rounds, one unit each", 20_000.0, found["bulk"], "rounds_per_second"),
        ("bulk on SQLite, rounds of units, 50 each", 20_000.0, found["units"], "rounds_per_second"),
    )
    for name, asked, sample, rate in rows:
        verdict = "" if asked is None else "met" if sample[rate] >= asked else "not met"
        latencies = (f"{sample['median_ms']:.1f}", f"{sample['p99_ms']:.1f}")
        shown.add_row(
            name, "" if asked is None else f"≥ {asked:,.0f}", f"{sample[rate]:,.0f}", *latencies, verdict
        )
    share = found["sqlite"]["requests_per_second"] / noop
    shown.add_row(
        "… as a share of the no-op", "≥ 60%", f"{share:.0%}", "", "", "met" if share >= 0.6 else "not met"
    )
    shown.add_row("start on an empty store", "", f"{back['empty_seconds']:.2f}", "", "", "")
    name = f"start after kill -9 with {back['rounds']:,.0f} rounds"
    verdict = "met" if back["writing_seconds"] < 3.0 else "not met"
    shown.add_row(f"{name}, to /healthz", "", f"{back['healthy_seconds']:.2f}", "", "", "")
    shown.add_row(f"{name}, to a write", "< 3", f"{back['writing_seconds']:.2f}", "", "", verdict)
    return shown


def main() -> None:
    """Measure everything, print the table, write the JSON."""
    parser = argparse.ArgumentParser(
        description="Measure the decision service beside a server that does nothing."
    )
    parser.add_argument("--quick", action="store_true", help="a short run that shows that everything works")
    sizes = QUICK if parser.parse_args().quick else FULL
    console = Console()
    facts = report.machine()
    found = rates(sizes, console)
    back = recovery(sizes, console)
    console.print(table(found, back, facts, sizes))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(
        json.dumps({"machine": facts, "sizes": sizes, "rates": found, "recovery": back}, indent=1) + "\n"
    )
    console.print("Written to benchmarks/out/service.json", style="dim")


if __name__ == "__main__":
    main()
