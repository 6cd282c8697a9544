"""The time and the peak memory of a study of 10^12 rounds on this machine.

Run it with `python benchmarks/trillion.py [FOLDER]`, or `python benchmarks/trillion.py --cuda` on a GPU, where a small
study is run first, so that everything is compiled. It continues an earlier run in that folder; the time of this run
is then that of the remaining cells only. Memory is the proportional set size (Pss) of this process and all its
descendants, read from /proc every half second, in which shared pages are counted once.
"""

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from aftereffect.studies import Study

FILE = Path(__file__).with_name("trillion.toml")


def proportional_bytes(pid: int) -> int:
    """Return the Pss of a process and all its descendants; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, ProcessLookupError):
        return 0
    own = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return own + sum(proportional_bytes(child) for child in children)


class Watch(threading.Thread):
    """Records the peak memory."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0

    def run(self) -> None:
        while True:
            self.most = max(self.most, proportional_bytes(os.getpid()))
            time.sleep(0.5)


def compile_all() -> None:
    """Run the study at small sizes on the GPU."""
    with tempfile.TemporaryDirectory() as scratch:
        small = FILE.read_text().replace("runs = 5_000", "runs = 10").replace("1_000_000]", "1_000]")
        file = Path(scratch, "small.toml")
        file.write_text(small.replace("[1_000, 10_000, 100_000, 1_000]", "[1_000]"))
        Study.load(file).run(scratch, engine="cuda", progress=False)


def main(folder: Path, engine: str = "auto") -> None:
    wanted = Study.load(FILE)
    rounds = sum(cell["runs"] * cell["horizon"] for cell in wanted.cells())
    watch = Watch()
    watch.start()
    begun = time.perf_counter()
    results = wanted.run(folder, progress=True, engine=engine)
    took = time.perf_counter() - begun
    seconds = results.times["seconds"]
    print(f"{len(wanted.cells())} cells, {rounds:.3g} rounds, {len(results.failures)} failed")
    print(f"{took:.1f} s this time; in cells, all runs of this study together: {seconds.sum():.0f} s")
    print(f"{rounds / took:.3g} rounds/s, most memory {watch.most / 2**30:.2f} GiB")


if __name__ == "__main__":
    if sys.argv[1:] == ["--cuda"]:
        compile_all()
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch), "cuda")
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
