"""Other libraries, each installed in its own virtual environment and measured in a subprocess.

An environment is created once, under `benchmarks/.envs`, and again when its requirements change. For a library that
cannot be installed or measured, the reason is reported instead of a result.
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
    """A library, its requirements for pip, and the script that measures it."""

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
    """A peer cannot be installed or measured; the message gives the reason."""


def short_reason(output: str) -> str:
    """Return the last error line of an output, or its last line, without the paths of this machine."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines or ["no output"]
    return re.sub(r"(?:file://)?(?:/[\w.+-]+){2,}", "<path>", errors[-1])[:200]


def called(command: list[str], limit: float) -> str:
    """Run a command and return its output; raise PeerFailed with a line of its output if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"took longer than {limit:g} s") from None
    if done.returncode:
        raise PeerFailed(short_reason(done.stderr or done.stdout))
    return done.stdout


def interpreter(peer: Peer) -> Path:
    """Return the Python interpreter of a peer's environment; create the environment if necessary."""
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
    """Run a peer's script for this many seconds per policy; return its JSON: measures by name, and versions."""
    # Some libraries print when they are imported; the script's own output is the last line.
    command = [str(python), str(HERE / "peers" / peer.script), str(seconds)]
    lines = called(command, 60.0 + 10.0 * seconds).splitlines()
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise PeerFailed("its script printed no JSON") from None
    return found
