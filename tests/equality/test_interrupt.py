"""Long simulations: Ctrl-C ends them soon and quietly, and a progress bar shows where someone looks."""

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

SOON = 60.0
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

# A player that takes 0.15 s in some rounds, so that a simulation of 3 × 4096 rounds takes half a second; simulated with
# each of these patiences and wishes for a bar, and a mark on the standard error after each.
SLOW = """
import sys, time
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

losses = ae.spreads.geometric(ae.tables.iid(3 * 4096, means=[0.2, 0.8], seed=1), half_life=1.0, max_delay=2)
for workload.PATIENCE, progress in {cases}:
    sim = ae.simulate(Slow(ae.Uniform(2)), losses, runs=1, progress=progress)
    print(sim.engine)
    print(end="|", file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_ctrl_c(engine: str, child: Callable[..., Any]) -> None:
    process = subprocess.Popen(
        **child(LONG.format(engine=engine), cache=None), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
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
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, seen.decode()
    return printed, seen.decode()


def test_progress_at_a_terminal(child: Callable[..., Any]) -> None:
    cases = [(0.2, None), (1000.0, None), (1000.0, True), (0.0, False)]
    printed, seen = at_a_terminal(child(SLOW.format(cases=cases), cache=None))
    assert printed == "loop\n" * 4
    late, early, wanted, unwanted, after = seen.split("|")
    assert "simulating" in late
    assert "simulating" in wanted
    assert (early, unwanted, after) == ("", "", "")


def test_no_progress_in_a_file(child: Callable[..., Any]) -> None:
    cases = [(0.0, None), (0.0, False)]
    done = subprocess.run(**child(SLOW.format(cases=cases), cache=None), capture_output=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "loop\n" * 2, "||")
