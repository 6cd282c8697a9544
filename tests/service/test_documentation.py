"""docs/service.md: every command is run, in order, in one folder, and prints what the page says it prints.

`...` on the page stands for anything. A command that the page shows to be refused ("aftereffect: ...") must end in
another status than 0, every other one in 0. Python examples run as doctests between the commands.
"""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.service import server
from tests.service.shell import ROOT, Shell

from aftereffect.service.demo import NAME

PAGE = ROOT / "docs" / "service.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    opened = Shell(tmp_path)
    yield opened
    opened.close()


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that follows it; a backslash continues a line."""
    joined = re.sub(r"\\\n\s*", "", block)
    parts = re.split(r"^\$ (.*)\n", joined, flags=re.MULTILINE)
    assert parts[0] == "", f"a block must begin with a command: {block!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def verbs(command: Any, *words: str) -> list[str]:
    """Return the verbs of a command line, as they are typed; those of a group follow its name."""
    below: dict[str, Any] = getattr(command, "commands", {})
    return [verb for name in below for verb in verbs(below[name], *words, name)] or [" ".join(words)]


def matches(wanted: str, printed: str) -> bool:
    pattern = re.escape(wanted).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def test_the_page_does_what_it_says(shell: Shell) -> None:
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    ran = 0
    for kind, block in found:
        if kind == "python":
            text = block.replace("8000", shell.port)
            test = doctest.DocTestParser().get_doctest(text, names, "docs/service.md", None, None)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            assert runner.failures == 0, block
            names = test.globs
            continue
        for line, wanted in commands(block):
            status, printed = shell.run(line)
            assert matches(wanted, printed), f"$ {line}\n{printed}\nbut the page says:\n{wanted}"
            assert (status != 0) == printed.startswith("aftereffect: "), f"$ {line} ended in {status}"
            ran += 1
    assert ran > 25


def test_the_demonstration_is_served(shell: Shell) -> None:
    status, printed = shell.run("aftereffect serve --demo --port 8000 --store demonstration.db &")
    assert (status, printed) == (0, "Aftereffect is at http://127.0.0.1:8000\n")
    assert NAME in shell.run("aftereffect status --store http://127.0.0.1:8000")[1]
    assert NAME in shell.run("curl -s http://127.0.0.1:8000/")[1]
    assert shell.run("kill %1") == (0, "")


def test_a_page_that_says_something_else_is_caught() -> None:
    assert matches("Round 1 (...): play email.\n", "Round 1 (2026-03-02): play email.\n")
    assert not matches("Round 1: play email.\n", "Round 1: play letter.\n")
    assert not matches("Round 1.\n", "Round 1.\nRound 2.\n")


def test_every_verb_of_the_service_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = verbs(typer.main.get_command(server.app))
    assert {"ask", "tell", "serve", "token create"} < set(found)
    for verb in found:
        assert re.search(rf"aftereffect {verb}\b", text), verb
