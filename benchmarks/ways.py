"""How many modules and functions of the package a simulation, a study cell and an advised round go through.

Run it with `python benchmarks/ways.py`. Each way is walked twice; the second time is counted, when everything is
compiled and loaded. Compiled kernels, comprehensions and lambdas do not count.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import aftereffect as ae

PACKAGE = str(Path(ae.__file__).parent)


def walked(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many modules and functions of the package a call runs."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({file for file, _ in seen}), len(seen)


def simulation() -> None:
    losses = ae.spreads.random_split(ae.tables.iid(500, means=[0.3, 0.6], seed=1), max_delay=2, seed=2)
    ae.simulate(ae.CompositeLossWrapper.tuned(2, max_delay=2, horizon=500), losses, runs=4, threads=1)


def study_cell() -> None:
    study = ae.Study(
        "way",
        grid={"n_arms": 2, "max_delay": 2, "horizon": 500},
        instance=[{"name": "split"}],
        player=[{"name": "CompositeLossWrapper"}],
        runs=4,
    )
    with tempfile.TemporaryDirectory() as folder:
        study.run(folder, progress=False)


def advised_round() -> Callable[[], object]:
    player = ae.default_player(2, max_delay=0, adviser=ae.advisers.Opinion([2.0, 1.0]), seed=1)
    return lambda: (player.ask(), player.tell(0.5))


def main() -> None:
    round_ = advised_round()
    for name, call in (("a simulation", simulation), ("a study cell", study_cell), ("an advised round", round_)):
        call()
        modules, functions = walked(call)
        print(f"{name}: {modules} modules, {functions} functions")


if __name__ == "__main__":
    main()
