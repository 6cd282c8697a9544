"""All benchmarks in one run: `python benchmarks/run.py [--quick]`.

The measures of a repeat run one after another, so that a slow period of the machine affects all of them; the best
repeat of each is reported. Compare ratios within a run, not absolute times. `--quick` only shows that everything works.
"""

import argparse
from pathlib import Path

import adaptive
import environments
import floor
import ours
import reach
import report
from rich.console import Console
from sample import Measure, Sample

OUT = Path(__file__).resolve().parent / "out" / "bench.json"


class PeerRuns:
    """The peers: installed once, then measured in each repeat. A peer that fails is listed with the reason."""

    def __init__(self, seconds: float) -> None:
        """Time each policy of each peer for about this many seconds."""
        self.seconds = seconds
        self.measures: dict[str, Measure] = {}
        self.versions: dict[str, str] = {}
        self._ready: list[tuple[environments.Peer, Path]] = []

    def prepare(self, peer: environments.Peer) -> None:
        """Create a peer's environment."""
        try:
            self._ready.append((peer, environments.interpreter(peer)))
        except environments.PeerFailed as failure:
            self._failed(peer, f"cannot be installed: {failure}")

    def repeat(self, console: Console) -> None:
        """Measure every installed peer once."""
        for peer, python in tuple(self._ready):
            console.print(f"  {peer.name}", style="dim")
            try:
                found = environments.measured(peer, python, self.seconds)
            except environments.PeerFailed as failure:
                self._ready.remove((peer, python))
                self._failed(peer, f"cannot be measured: {failure}")
                continue
            self.versions |= {f"{peer.name}: {name}": number for name, number in found["versions"].items()}
            for name, sample in found["measures"].items():
                full = f"{peer.name}: {name}"
                setting = {"K": ours.N_ARMS, "requirements": list(peer.requirements)}
                measure = self.measures.setdefault(full, Measure(full, "peers", setting))
                measure.samples.append(Sample(sample["seconds"], sample["rounds"], 0))
                if sample.get("broke_at") and not measure.note:
                    measure.note = f"broke in round {sample['broke_at']:,} ({sample['reason']})"

    def _failed(self, peer: environments.Peer, reason: str) -> None:
        setting = {"requirements": list(peer.requirements)}
        self.measures[peer.name] = Measure(peer.name, "peers", setting, note=reason)


def main() -> None:
    """Measure everything, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description="Measure this library, its peers and a lower bound on the time.")
    parser.add_argument("--quick", action="store_true", help="a short run that shows that everything works")
    parser.add_argument("--repeats", type=int, default=0, help="how often each is measured (default 3; 1 with --quick)")
    options = parser.parse_args()
    quick: bool = options.quick
    repeats: int = options.repeats or (1 if quick else 3)
    console = Console()
    facts = report.machine()

    peers = PeerRuns(0.3 if quick else 4.0)
    for peer in environments.PEERS:
        console.print(f"preparing {peer.name}", style="dim")
        peers.prepare(peer)
    console.print("building losses, compiling", style="dim")
    horizon = 50_000 if quick else 1_000_000
    worlds = ours.Worlds(horizon)
    mine = [*ours.measures(worlds, facts["cores"], quick), *adaptive.measures(worlds, quick)]
    runs = 64 if quick else 1024
    sizes = ((10, 10), (10, 100), (2, 10), (3, 10), (4, 10))
    floors = [floor.measure(n_arms, max_delay, horizon, runs) for n_arms, max_delay in sizes]
    for repeat in range(1, repeats + 1):
        console.print(f"repeat {repeat} of {repeats}", style="dim")
        for measure in (*mine, *floors):
            console.print(f"  {measure.name}", style="dim")
            measure.repeat()
        peers.repeat(console)

    everything = (*mine, *floors, *peers.measures.values(), *worlds.builds)
    measures = {measure.name: measure for measure in everything}
    verdicts = reach.verdicts(measures)
    console.print(report.table(measures, verdicts, facts))
    settings = {"quick": quick, "repeats": repeats, "peers": peers.versions}
    report.write(OUT, measures, verdicts, facts, settings)
    console.print("Written to benchmarks/out/bench.json", style="dim")


if __name__ == "__main__":
    main()
