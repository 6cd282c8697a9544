"""The results of a run of the benchmarks: a table on the screen and a JSON file, with a description of the machine."""

import datetime
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reach import Verdict, best_peer, over
from rich.table import Table
from sample import Measure

import aftereffect

# The lower bound of each measure.
FLOORS = {
    "blocks, d=10, threads=1": "floor, K=10, d=10",
    "blocks, d=100, threads=1": "floor, K=10, d=100",
    **{f"blocks, K={k}, d=10, threads=1": f"floor, K={k}, d=10" for k in (2, 3, 4)},
}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model() -> str:
    """Return the name of the processor as reported by the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Return a description of the machine and the versions used."""
    versions = {"python": platform.python_version(), "aftereffect": aftereffect.__version__}
    versions |= {name: version(name) for name in ("numpy", "numba", "llvmlite")}
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "cores": cores(),
        "system": platform.system(),
        "versions": versions,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def short(value: float | None) -> str:
    """Return a number to three significant digits with a unit prefix, or a dash."""
    if value is None:
        return "–"
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


def table(measures: Mapping[str, Measure], verdicts: list[Verdict], facts: Mapping[str, Any]) -> Table:
    """Return every measure with its rates and ratios."""
    peer = best_peer(measures)
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    shown = Table(
        title="Best of the repeats, K=10 unless stated",
        caption=f"{facts['cpu']}, {facts['cores']} cores; {versions}; {facts['date']}",
    )
    shown.add_column("measure")
    for heading in ("µs a round", "rounds/s", "updates/s", "× best peer", "of the floor"):
        shown.add_column(heading, justify="right")
    shown.add_column("ratio to the goal (1 or more: met)")
    group = None
    for name, measure in measures.items():
        if group not in (None, measure.group):
            shown.add_section()
        group = measure.group
        rate = measure.rounds_per_second
        floor = measures[FLOORS[name]].updates_per_second if FLOORS.get(name) in measures else None
        share = over(measure.updates_per_second, floor)
        goals = [f"{short(v.ratio)} of {v.text}" for v in verdicts if v.about == name]
        timed = measure.group != "built once"
        cells = (
            short(measure.microseconds) if timed else f"{measure.samples[0].seconds:.2f} s in all",
            short(rate if timed else None),
            short(measure.updates_per_second),
            short(over(rate, peer)) if timed and measure.group != "floor" else "–",
            "–" if share is None else f"{share:.0%}",
        )
        shown.add_row(name, *cells, "\n".join([*goals, *([measure.note] if measure.note else [])]))
    return shown


def write(
    path: Path,
    measures: Mapping[str, Measure],
    verdicts: list[Verdict],
    facts: Mapping[str, Any],
    run: Mapping[str, Any],
) -> None:
    """Write all results as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": facts,
        "run": run,
        "measures": [measure.record() for measure in measures.values()],
        "reach": [verdict._asdict() for verdict in verdicts],
    }
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
