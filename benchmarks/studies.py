"""The overhead of a study over the engine: the same cells by `Study.run` and by a plain loop over `simulate`.

Run it with `python benchmarks/studies.py`. Both build the losses of each group once and keep them; the study also
summarises, writes and syncs. It writes one file per cell, in its own thread while the next cell is simulated; the
remaining overhead is one or two milliseconds of processor time per cell. Its share depends on how long a cell takes, so
three sizes are measured. The goal is at most 5%.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import aftereffect as ae
from aftereffect.studies import Study
from aftereffect.studies.cells import Draws, build_player, cell_seed, groups

REPEATS = 7
STUDIES = {
    "6 cells of about a second": {"n_arms": [4], "max_delay": [3], "horizon": [400_000]},
    "12 cells of some 0.2 s": {"n_arms": [4], "max_delay": [3, 10], "horizon": [100_000]},
    "24 cells of some 50 ms": {"n_arms": [2, 4], "max_delay": [3, 10], "horizon": [20_000]},
}


def study(grid: dict[str, list[int]], seed: int) -> Study:
    """Return a study of three players on two instances; its cells depend on the seed."""
    return Study(
        "overhead",
        grid=grid,
        instance=[{"name": "split"}, {"name": "delays"}],
        player=[{"name": "CompositeLossWrapper", "base": base} for base in ("tsallis", "exp3", "uniform")],
        runs=1000,
        seed=seed,
    )


def in_a_loop(wanted: Study) -> None:
    """Simulate every cell, and discard the results."""
    for group in groups(wanted.cells()):
        draws = Draws(group[0])
        for cell in group:
            losses = draws[0]
            player = build_player(cell, losses)
            given = {"runs": cell["runs"], "seed": cell_seed(cell, "runs"), "checkpoints": "log"}
            ae.simulate(player, losses, **given, progress=False)


def as_a_study(wanted: Study) -> None:
    """Run the study in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        results = wanted.run(Path(folder), progress=False)
        if results.failures or results.missing:
            raise RuntimeError(f"the study must finish, but got {results!r}")


def seconds(call: Callable[[Study], None], wanted: Study) -> float:
    begun = time.perf_counter()
    call(wanted)
    return time.perf_counter() - begun


def main() -> None:
    for name, grid in STUDIES.items():
        as_a_study(study(grid, 0))
        in_a_loop(study(grid, 0))
        ratios, each = [], []
        for repeat in range(REPEATS):
            wanted = study(grid, 1 + repeat)
            # The order alternates, so that other load on the machine affects both equally.
            calls = (in_a_loop, as_a_study) if repeat % 2 else (as_a_study, in_a_loop)
            took = {call: seconds(call, wanted) for call in calls}
            ratios.append(took[as_a_study] / took[in_a_loop])
            each.append(1000.0 * (took[as_a_study] - took[in_a_loop]) / len(wanted.cells()))
        median, low, high = statistics.median(ratios), min(ratios), max(ratios)
        print(
            f"{name}: {median - 1:+.1%} (least {low - 1:+.1%}, most {high - 1:+.1%}, {REPEATS} pairs), "
            f"{statistics.median(each):.1f} ms per cell"
        )


if __name__ == "__main__":
    main()
