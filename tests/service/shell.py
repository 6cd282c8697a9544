"""A very small shell for the commands in the documentation: what it says must be what happens.

Knows `aftereffect ...` (run in this process), `aftereffect serve ... &` and `kill %1` (a process of its own), `python`,
`sh` and `cat` with a file, `curl` with -s, -X, -H and -d, `NAME=$(command)`, `export NAME=value` and `$NAME`, and
`aftereffect ... > FILE`. Port 8000 stands for a free one.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from tests.service import server
from tests.service.ports import kept_port

from aftereffect import cli
from aftereffect.core.errors import AftereffectError

SERVE = "import sys; from tests.service.server import app; app(sys.argv[1:], prog_name='aftereffect')"
ROOT = Path(__file__).parents[2]


class Shell:
    """One session in one folder; `close` ends the server it may have started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables: dict[str, str] = {}
        self._server: subprocess.Popen[str] | None = None
        self.port = str(kept_port(self))

    def run(self, line: str) -> tuple[int, str]:
        """Return the exit status and all that a line printed."""
        status, printed = self._run(re.sub(r"\b8000\b", self.port, line))
        return status, printed.replace(self.port, "8000")

    def _run(self, line: str) -> tuple[int, str]:
        if captured := re.fullmatch(r"(\w+)=\$\((.*)\)", line):
            status, printed = self._run(captured[2])
            self.variables[captured[1]] = printed.strip()
            return status, ""
        words = [self._expanded(word) for word in shlex.split(line)]
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.variables[name] = value
            return 0, ""
        if words[0] == "aftereffect" and words[-1] == "&":
            return self._serve(words[1:-1])
        if words == ["kill", "%1"]:
            return self.close()
        if words[0] == "curl":
            return _curl(words[1:])
        if words[0] == "cat":
            return 0, (self.folder / words[1]).read_text(encoding="utf-8")
        if words[0] == "python":
            return self._run_program([sys.executable, *words[1:]], {**os.environ, "PYTHONPATH": str(ROOT / "src")})
        if words[0] == "sh":
            # With nothing but what cron gives.
            folders = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
            return self._run_program(words, {"HOME": str(self.folder), "PATH": folders})
        if words[0] != "aftereffect":
            raise ValueError(f"the documentation's commands must be known here, but got {line!r}")
        words, file = (words[:-2], words[-1]) if words[-2] == ">" else (words, None)
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            done = server.command(*words[1:], env=self.variables, app=cli.app)
        except (AftereffectError, OSError) as error:
            # As `cli.main` does.
            return 2, f"aftereffect: {error}\n"
        finally:
            os.chdir(before)
        if file is None:
            return done.code, done.out + done.err
        (self.folder / file).write_text(done.out, encoding="utf-8")
        return done.code, done.err

    def _run_program(self, command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def _expanded(self, word: str) -> str:
        return re.sub(r"\$(\w+)", lambda found: self.variables[found[1]], word)

    def _serve(self, words: list[str]) -> tuple[int, str]:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        environment = {**os.environ, **self.variables, "PYTHONPATH": paths}
        command = [sys.executable, "-c", SERVE, *words]
        self._server = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if self._server.stdout is None:
            raise RuntimeError("a pipe was asked for")
        return 0, self._server.stdout.readline()

    def close(self) -> tuple[int, str]:
        """Stop the server, as a person would, and return its exit status."""
        if self._server is None:
            return 0, ""
        self._server.send_signal(signal.SIGTERM)
        self._server.communicate(timeout=120)
        status, self._server = self._server.returncode, None
        return status, ""


def _curl(words: list[str]) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-X", default=None)
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d", default=None)
    given = parser.parse_args(words)
    headers = dict(header.split(": ", 1) for header in given.H)
    method = given.X or ("GET" if given.d is None else "POST")
    answer = httpx.request(method, given.url, headers=headers, content=given.d, trust_env=False, timeout=60)
    return 0, answer.text + "\n"
