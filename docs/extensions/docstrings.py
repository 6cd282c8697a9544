"""Docstrings, which are plain text for `help()`, as reStructuredText for the site.

- `code` in single backticks becomes a link to the object if it is public, else code;
- an indented block after an empty line is a formula or a table: a literal block;
- a line "name: text" about an argument or a field becomes an entry of the list of parameters;
- docs/theory/adaptive.md becomes a link to that page.
"""

import inspect
import re
from contextlib import suppress
from typing import Any

from sphinx.application import Sphinx

import aftereffect

NAMESPACES = ("labelled", "rivals", "spreads", "tables", "theory")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PAGE = re.compile(r"docs/((?:theory/)?\w+)\.md(?:, sections? \d+)?")
ENTRY = re.compile(r"^([a-z]\w*(?:(?:, | and )[a-z]\w*)*): (.*)")
# Code and *emphasis* stay as they are; |x|, L_ and a lone asterisk are plain text in docstrings.
KEPT = re.compile(r"(`[^`\n]+`|(?<!\w)\*\w[^*\n]*\*)")
MARKUP = re.compile(r"(\||\*|(?<=\w)_(?=\W|$))")


def target(name: str) -> str | None:
    """Return the public name that a piece of code refers to, or None.

    >>> target("Exp3"), target("theory.tuning"), target("ask")
    ('aftereffect.Exp3', 'aftereffect.theory.tuning', None)
    """
    name = name.removeprefix("aftereffect.").removeprefix("ae.").removesuffix("()")
    head, _, rest = name.partition(".")
    if head in NAMESPACES:
        found = getattr(aftereffect, head)
        return f"aftereffect.{name}" if rest and hasattr(found, rest) else None
    if head in aftereffect.__all__:
        return f"aftereffect.{name}"
    owners = [space for space in NAMESPACES if head in getattr(getattr(aftereffect, space), "__all__", ())]
    owners += ["theory"] * (head != "rates" and inspect.isfunction(getattr(aftereffect.theory, head, None)))
    return f"aftereffect.{owners[0]}.{name}" if owners else None


def linked(found: re.Match[str]) -> str:
    """Return code as a link to the public object it names, or as code."""
    code = found[1]
    goal = target(code)
    return f":py:obj:`{code} <{goal}>`" if goal else f"``{code}``"


def prose(line: str) -> str:
    """Return a line of plain text as reStructuredText."""
    pieces = KEPT.split(line)
    escaped = "".join(piece if KEPT.fullmatch(piece) else MARKUP.sub(r"\\\1", piece) for piece in pieces)
    return PAGE.sub(r":doc:`/\1`", CODE.sub(linked, escaped))


def arguments(what: str, found: Any) -> set[str]:
    """Return the names of the arguments of a function or class, and of a class's fields."""
    names = set(getattr(found, "__annotations__", {})) if what in ("class", "exception") else set()
    with suppress(TypeError, ValueError):
        names |= set(inspect.signature(found).parameters)
    return names


def converted(lines: list[str], names: set[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText; names: its arguments and fields.

    >>> converted(["Text.", "", "    a = b", "", "low: the least."], {"low"})
    ['Text.', '', '::', '', '    a = b', '', ':param low: the least.']
    """
    result: list[str] = []
    literal = example = entry = False
    for line in lines:
        blank, indent = not line.strip(), len(line) - len(line.lstrip())
        starts = bool(not result or not result[-1].strip())
        if blank:
            example = entry = False
            result.append("")
            continue
        if not indent:
            literal = False
        example = example or line.lstrip().startswith(">>>")
        listed = re.match(r"(- |\* |\d+\. )", line)
        if literal or example:
            result.append(line)
        elif indent and starts:
            literal = True
            result += ["::", "", line]
        elif (found := ENTRY.match(line)) and set(re.split(r", | and ", found[1])) <= names:
            entry = True
            if not starts and not result[-1].startswith((":param", " ")):
                result.append("")
            first, *others = re.split(r", | and ", found[1])
            result += [f":param {first}: {prose(found[2])}"]
            result += [f":param {other}: See ``{first}``." for other in others]
        elif entry:
            result.append("    " + prose(line.lstrip()))
        elif listed and not starts and not re.match(r"(- |\* |\d+\. |  )", result[-1]):
            result += ["", prose(line)]
        else:
            result.append(prose(line))
    return result


def docstring(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring in place."""
    lines[:] = converted(lines, arguments(what, found))


def skipped(app: Sphinx, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class describes."""
    text = str(getattr(found, "__doc__", "") or "")
    return True if text.startswith("Alias for field number") else None


def signature(
    app: Sphinx, what: str, name: str, found: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """Show no arguments for a class that is not meant to be called: a protocol."""
    if what == "class" and getattr(found, "_is_protocol", False):
        return "", None
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-skip-member", skipped)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
