"""The directive `commands`: every command of `aftereffect`, with its arguments and options, from the program itself."""

from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aftereffect.cli import app as program


def commands(group: Any, path: tuple[str, ...] = ("aftereffect",)) -> Iterator[tuple[str, Any]]:
    """Yield every command with the words that call it, in the order of the program's help."""
    for name, command in group.commands.items():
        if getattr(command, "hidden", False):
            continue
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def usage(words: str, command: Any) -> str:
    """Return the line that calls a command."""
    taken = [argument for argument in command.params if argument.param_type_name == "argument"]
    names = [argument.name.upper() if argument.required else f"[{argument.name.upper()}]" for argument in taken]
    options = ["[OPTIONS]"] if len(taken) < len(command.params) else []
    return " ".join([words, *options, *names])


def parameter(given: Any) -> str:
    """Return an item of the list of a command's arguments and options."""
    argument = given.param_type_name == "argument"
    names = given.name.upper() if argument else ", ".join([*given.opts, *given.secondary_opts])
    said = [" ".join(str(given.help or "").split())]
    if given.required and not argument:
        said.append("Required.")
    if not given.required and given.default not in (None, False, (), []):
        said.append(f"Default: ``{given.default}``.")
    if not argument and getattr(given, "envvar", None):
        said.append(f"Environment: ``{given.envvar}``.")
    text = " ".join(filter(None, said)).replace("*", r"\*").replace("|", r"\|")
    return f"- ``{names}``{' – ' if text else ''}{text}"


class Commands(SphinxDirective):
    """List all commands."""

    def run(self) -> list[nodes.Node]:
        """Return one section for each command."""
        lines: list[str] = []
        for words, command in commands(typer.main.get_command(program)):
            lines += [words, "-" * len(words), "", *(command.help or "").replace("*", r"\*").splitlines(), ""]
            lines += [".. code-block:: text", "", "   " + usage(words, command), ""]
            lines += [*map(parameter, command.params), ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
