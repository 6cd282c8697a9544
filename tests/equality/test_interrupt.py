"""Long simulations: Ctrl-C ends them soon and quietly, and a progress bar shows where someone looks."""

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

SOON = 20.0
# Compiled by a short simulation first: the clock runs on simulating, not on compiling.
LONG = """
import aftereffect as ae
losses = ae.spreads.geometric(ae.tables.iid(20_000, means=[0.2, 0.8], seed=1), half_life=1.0, max_delay=2)
player = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=2, horizon=20_000)
ae.simulate(player, losses, runs=1, engine={engine!r})
print("ready", flush=True)
ae.simulate(player, losses, runs=1_000_000, engine={engine!r}, checkpoints=1)
print("not interrupted")
"""

# A player that takes 0.15 s in some rounds, so that a simulation of 3 × 4096 rounds takes half a second.
SLOW = """
import time
import aftereffect as ae
from aftereffect.engines import workload

class Slow(ae.Naive):
    def kernel(self):
        return None
    def tell(self, total):
        played = super().tell(total)
        if played.round % 4096 == 1:
            time.sleep(0.15)
        return played

workload.PATIENCE = {patience}
losses = ae.spreads.geometric(ae.tables.iid(3 * 4096, means=[0.2, 0.8], seed=1), half_life=1.0, max_delay=2)
sim = ae.simulate(Slow(ae.Uniform(2)), losses, runs=1, progress={progress})
print(sim.engine)
"""


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_ctrl_c(engine: str, child: Callable[..., Any]) -> None:
    process = subprocess.Popen(
        **child(LONG.format(engine=engine)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            # Left alone it would go on for minutes.
            out, err = process.communicate(timeout=SOON)
        finally:
            process.kill()
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert out == ""
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert err.count("Traceback") == 1
    assert "Stopped" not in err
    assert "Exception" not in err


def at_a_terminal(arguments: dict[str, Any]) -> tuple[str, str]:
    """Return what a process prints, and what it writes to a terminal as its standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(**arguments, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:
            # How Linux says that nobody holds the other end any more.
            pass
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, seen.decode()
    return printed, seen.decode()


@pytest.mark.parametrize(
    ("patience", "progress", "shows"),
    [(0.2, None, True), (1000.0, None, False), (1000.0, True, True), (0.0, False, False)],
)
def test_progress_at_a_terminal(
    patience: float, progress: bool | None, shows: bool, child: Callable[..., Any]
) -> None:
    printed, seen = at_a_terminal(child(SLOW.format(patience=patience, progress=progress)))
    assert printed == "loop\n"
    assert ("simulating" in seen) == shows
    assert shows or seen == ""


@pytest.mark.parametrize("progress", [None, False])
def test_no_progress_in_a_file(progress: bool | None, child: Callable[..., Any]) -> None:
    done = subprocess.run(
        **child(SLOW.format(patience=0.0, progress=progress)), capture_output=True, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "loop\n", "")
