"""The pages of docs/start and docs/guides: every command and every Python example is run and prints what the page says.

The blocks of a page are run in order, in one folder. Python examples are doctests. In a console block, `...` stands for
anything; a command that is refused ("aftereffect: ...") must end in a status other than 0, every other one in 0. A
block after a line such as "Save this as `mine.toml`:" is written to that file. Blocks marked `text` are not run. The
URL POSTGRES on a page stands for that of a real database.
"""

import contextlib
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.service.postgres import running_postgres
from tests.service.shell import ROOT, Shell

from aftereffect.cli import app
from aftereffect.service.demo import NAME

PAGES = sorted(path for folder in ("start", "guides") for path in (ROOT / "docs" / folder).glob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SERVICE = [ROOT / "docs" / "guides" / name for name in ("service.md", "operate.md")]
POSTGRES = "postgresql://shop@localhost/shop"
BLOCK = re.compile(r"(?:[Ss]aves? [^\n]*`([\w.-]+)`:\n\n)?^```([\w{}]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    opened = Shell(tmp_path)
    yield opened
    opened.close()


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that follows it; a backslash continues a line."""
    joined = re.sub(r"\\\n\s*", "", block)
    parts = re.split(r"^\$ (.*)\n", joined, flags=re.MULTILINE)
    assert parts[0] == "", f"a block must begin with a command: {block!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def matches(wanted: str, printed: str) -> bool:
    """Whether a text is what the page shows; `...` is anything, and spaces at the ends of lines do not count."""
    pattern = re.escape(wanted).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, re.sub(r" +$", "", printed, flags=re.MULTILINE), re.DOTALL) is not None


def run_python(page: Path, block: str, names: dict[str, Any]) -> None:
    """Run a doctest that continues with the names of the earlier ones."""
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=told.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(told)


def run_commands(shell: Shell, block: str) -> None:
    for line, wanted in commands(block):
        status, printed = shell.run(line)
        # A study says how far it is every half a minute, if it takes so long.
        printed = re.sub(r"^\d+ of \d+ cells, .* left\n", "", printed, flags=re.MULTILINE)
        assert matches(wanted, printed), f"$ {line}\n{printed}\nbut the page says:\n{wanted}"
        assert (status != 0) == printed.startswith("aftereffect: "), f"$ {line} ended in {status}"


@pytest.mark.parametrize("page", PAGES, ids=[f"{page.parent.name}/{page.stem}" for page in PAGES])
def test_the_page_does_what_it_says(page: Path, shell: Shell) -> None:
    text, names = page.read_text(encoding="utf-8"), dict[str, Any]()
    with contextlib.ExitStack() as stack:
        if POSTGRES in text:
            text = text.replace(POSTGRES, f"'{stack.enter_context(running_postgres()).get_uri()}'")
        run_page(page, text, shell, names)


def run_page(page: Path, text: str, shell: Shell, names: dict[str, Any]) -> None:
    for file, kind, block in BLOCK.findall(text):
        if file:
            (shell.folder / file).write_text(block, encoding="utf-8")
        elif kind == "python":
            assert ">>>" in block, f"an example must be a doctest or saved as a file: {block!r}"
            run_python(page, block.replace("8000", shell.port), names)
        elif kind == "console":
            run_commands(shell, block)
        else:
            assert kind in ("text", "{toctree}"), f"a block must be python, console, text or a file: {block!r}"


def test_the_readme_prints_what_the_first_example_prints() -> None:
    readme, first = (path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "docs/start/first.md"))
    (shown,) = re.findall(r"^array\(.*\)$", readme, re.MULTILINE)
    assert f"\n{shown}\n" in first
    default, naive, uniform = re.findall(r"^\((\d+), (\d+), (\d+)\)$", first, re.MULTILINE)[0]
    text = re.sub(r"\s+", " ", readme)
    assert f"is {default}; that of uniform play is {uniform}" in text
    assert f"of the same day, is {naive}." in text


@pytest.mark.parametrize("page", LINKED, ids=[str(page.relative_to(ROOT)) for page in LINKED])
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert re.match(r"https?://", target) or (page.parent / target).exists(), target


def verbs(command: Any, *words: str) -> list[str]:
    """Return the verbs of a command line, as they are typed; those of a group follow its name."""
    below: dict[str, Any] = getattr(command, "commands", {})
    return [verb for name in below for verb in verbs(below[name], *words, name)] or [" ".join(words)]


def test_every_verb_of_the_service_is_on_its_pages() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in SERVICE)
    found = verbs(typer.main.get_command(app))
    others = {"backtest", "blocks", "compare", "demo", *(verb for verb in found if verb.startswith("study "))}
    assert {"ask", "tell", "serve", "token create"} < set(found) - others
    for verb in {*found} - others:
        assert re.search(rf"aftereffect {verb}\b", text), verb


def test_the_demonstration_is_served(shell: Shell) -> None:
    status, printed = shell.run("aftereffect serve --demo --port 8000 --store demonstration.db &")
    assert (status, printed) == (0, "Aftereffect is at http://127.0.0.1:8000\n")
    assert NAME in shell.run("aftereffect status --store http://127.0.0.1:8000")[1]
    assert NAME in shell.run("curl -s http://127.0.0.1:8000/")[1]
    assert shell.run("kill %1") == (0, "")


def test_a_page_that_says_something_else_is_caught(shell: Shell) -> None:
    assert matches("Round 1 (...): play email.\n", "Round 1 (2026-03-02): play email.\n")
    assert not matches("Round 1: play email.\n", "Round 1: play letter.\n")
    assert not matches("Round 1.\n", "Round 1.\nRound 2.\n")
    with pytest.raises(AssertionError, match=r"Expected:\n +3"):
        run_python(ROOT / "README.md", ">>> 1 + 1\n3\n", {})
    with pytest.raises(AssertionError, match=r"but the page says:\n\s*Mine"):
        run_commands(shell, "$ aftereffect --version\nMine\n")
