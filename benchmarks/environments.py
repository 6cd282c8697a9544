"""Peers measured side by side: each library in an environment of its own, made here, run as a subprocess.

An environment is made once, under `benchmarks/.envs`, and made anew when its requirements change. A library
that cannot be installed or measured gets a reason instead of a figure.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE / ".envs"


class Peer(NamedTuple):
    """A library, what pip is asked for, and the script that measures it."""

    name: str
    requirements: tuple[str, ...]
    script: str


PEERS = (
    Peer("river", ("river==0.26.1",), "river_exp3.py"),
    Peer("pymab", ("pymab==2.0.1",), "pymab_exp3.py"),
    Peer(
        "SMPyBandits",
        ("SMPyBandits==0.9.7", "numpy<2", "scipy<1.12", "matplotlib<3.9", "seaborn", "joblib", "tqdm"),
        "smpybandits.py",
    ),
)


class PeerFailed(RuntimeError):
    """A peer cannot be measured here; the message says why."""


def short_reason(output: str) -> str:
    """Return the last line that tells why, without this machine's folders."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines or ["no output"]
    return re.sub(r"(?:file://)?(?:/[\w.+-]+){2,}", "<path>", errors[-1])[:200]


def called(command: list[str], limit: float) -> str:
    """Run a command and return what it wrote; its own words on failure."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"took longer than {limit:g} s") from None
    if done.returncode:
        raise PeerFailed(short_reason(done.stderr or done.stdout))
    return done.stdout


def interpreter(peer: Peer) -> Path:
    """Return the Python of a peer's environment, after making it if need be."""
    folder = ENVIRONMENTS / peer.name
    python = folder / "bin" / "python"
    stamp = folder / "requirements.txt"
    wanted = "\n".join((*peer.requirements, sys.version)) + "\n"
    if not (stamp.is_file() and stamp.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        called([sys.executable, "-m", "venv", str(folder)], 120.0)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        called([*pip, "install", *peer.requirements], 900.0)
        stamp.write_text(wanted)
    return python


def measured(peer: Peer, python: Path, seconds: float) -> dict[str, Any]:
    """Run a peer's script for so many seconds a policy; return its JSON: measures by name, and versions."""
    # Some libraries talk while they are imported; the script's own line is the last.
    command = [str(python), str(HERE / "peers" / peer.script), str(seconds)]
    lines = called(command, 60.0 + 10.0 * seconds).splitlines()
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise PeerFailed("its script printed no JSON") from None
    return found
