"""Docstrings, which are plain text for `help()`, as reStructuredText for the site; signatures with readable types.

- `code` in single backticks becomes a link to the object if it is public, else code; so does the name of a class;
- an indented block after an empty line is a formula or a table: a literal block;
- a line "name: text" about an argument or a field becomes an entry of the list of parameters;
- docs/theory/adaptive.md becomes a link to that page.
"""

import inspect
import re
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, get_args

from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import aftereffect
from aftereffect import studies
from aftereffect.players.limits import Common, Range

SPACES = {name: getattr(aftereffect, name) for name in ("labelled", "rivals", "spreads", "tables", "theory")}
SPACES["studies"] = studies

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PAGE = re.compile(r"docs/((?:theory|guides)/[\w-]+)\.md")
NAMES = r"[a-z]\w*(?:(?:, | and )[a-z]\w*)*"
ENTRY = re.compile(rf"^({NAMES}):(?: (.*))?$")
# A second entry may follow on the same line: "low: the least. high: the most."
NEXT = re.compile(rf"(?<=[.;)]) (?=({NAMES}):(?: |$))")
# Code and *emphasis* stay as they are; |x|, L_ and a lone asterisk are plain text in docstrings.
KEPT = re.compile(r"(`[^`\n]+`|(?<!\w)\*\w[^*\n]*\*)")
MARKUP = re.compile(r"(\||\*|(?<=\w)_(?=\W|$))")
CLASS = re.compile(r"(?<![\w.`])([A-Z][a-z]+[A-Z0-9]\w*|UCB1)(?![\w`(])")

ARRAY_LIKE = re.compile(r"~numpy\._typing\._array_like\._Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]")
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[~numpy\.\w+\]\]")
COMMON = re.compile(r"\*\*\w+: ~typing\.Unpack\[~aftereffect\.players\.limits\.(Common|Range)\]")


def public_names() -> dict[str, str]:
    """Return where every public class and function is described, by where it is defined."""
    found = {}
    for space, module in {**SPACES, "": aftereffect}.items():
        for name in getattr(module, "__all__", None) or vars(module):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = ".".join(filter(None, ("aftereffect", space, name)))
    return {defined: public for defined, public in found.items() if defined.startswith("aftereffect.")}


# Replies of the service that others extend.
BASES = ("Row", "Summary")

# Namespaces whose functions have names that are also plain words, or names of arguments.
AMBIGUOUS = ("aftereffect.theory.", "aftereffect.spreads.", "aftereffect.tables.")
INTERNAL = ("per_arm", "at_once", "as_table")

PUBLIC = public_names()
BY_NAME = {name.rpartition(".")[2]: name for name in PUBLIC.values()}


def target(code: str) -> str | None:
    """Return the public name that a piece of code refers to, or None.

    >>> target("Exp3"), target("theory.tuning"), target("ask")
    ('aftereffect.Exp3', 'aftereffect.theory.tuning', None)
    """
    name = code.removeprefix("aftereffect.").removeprefix("ae.").removesuffix("()")
    head, _, rest = name.partition(".")
    if head in SPACES:
        return BY_NAME.get(rest)
    owner = BY_NAME.get(head, "")
    # Without its namespace a name must be unmistakable.
    if not owner or (owner.startswith(AMBIGUOUS) and "_" not in head) or head in INTERNAL:
        return None
    return f"{owner}.{rest}" if rest else owner


def linked(found: re.Match[str]) -> str:
    """Return code as a link to the public object it names, or as code."""
    code = found[1]
    goal = target(code)
    return f":py:obj:`{code} <{goal}>`" if goal else f"``{code}``"


def prose(line: str) -> str:
    """Return a line of plain text as reStructuredText."""
    line = re.sub(r"^([A-Za-z]\.)(?=\s|$)", r"\\\1", line)
    pieces = [
        piece if KEPT.fullmatch(piece) else CLASS.sub(lambda word: f"`{word[0]}`" if target(word[0]) else word[0],
                                                      MARKUP.sub(r"\\\1", piece))
        for piece in KEPT.split(line)
    ]
    return PAGE.sub(r":doc:`\1 </\1>`", CODE.sub(linked, "".join(pieces)))


def arguments(what: str, found: Any) -> set[str]:
    """Return the names of the arguments of a function or class, and of a class's fields."""
    names = set(getattr(found, "__annotations__", {})) if what in ("class", "exception") else set()
    with suppress(TypeError, ValueError):
        names |= set(inspect.signature(found).parameters)
    return names


def entries(text: str, names: set[str]) -> list[tuple[str, str]] | None:
    """Return the entries on a line, as names and text; None if it is not about arguments."""
    result = []
    for part in split_entries(text, names):
        found = ENTRY.match(part)
        if found is None or not set(re.split(r", | and ", found[1])) <= names:
            return None
        result.append((found[1], found[2] or ""))
    return result


def split_entries(text: str, names: set[str]) -> list[str]:
    """Return the parts of a line that begin with the name of an argument and a colon.

    >>> split_entries("low: the least. high: the most.", {"low", "high"})
    ['low: the least.', 'high: the most.']
    """
    parts, start = [], 0
    for found in NEXT.finditer(text):
        if set(re.split(r", | and ", found[1])) <= names:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def listed(words: str, text: str) -> str:
    """Return an item of the list of parameters."""
    return f"    - **{words}** – {prose(text)}"


def converted(lines: list[str], names: set[str], heading: str = "Parameters") -> list[str]:
    """Return the lines of a docstring as reStructuredText; names: its arguments and fields.

    >>> converted(["Text.", "", "    a = b", "", "low: the least."], {"low"})
    ['Text.', '', '.. code-block:: text', '', '    a = b', '', ':Parameters:', '    - **low** – the least.']
    """
    result: list[str] = []
    literal = example = entry = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        starts = not result or not result[-1].strip()
        if not line.strip():
            example = entry = False
            result.append("")
            continue
        literal = literal and indent > 0
        example = example or line.lstrip().startswith(">>>")
        if literal or example:
            result.append(line)
        elif indent and starts:
            literal = True
            result += [".. code-block:: text", "", line]
        elif not indent and (found := entries(line, names)):
            before = next((past for past in reversed(result) if past.strip()), "")
            if not before.startswith(("    - **", "      ")):
                result += [] if starts else [""]
                result.append(f":{heading}:")
            elif starts:
                result.pop()
            entry = True
            result += [listed(words, text) for words, text in found]
        elif entry:
            first, *others = split_entries(line.strip(), names)
            result.append("      " + prose(first))
            result += [listed(*pair) for other in others for pair in entries(other, names) or []]
        elif re.match(r"(- |\* |\d+\. )", line) and not starts and not re.match(r"(- |\* |\d+\. |  )", result[-1]):
            result += ["", prose(line)]
        else:
            result.append(prose(line))
    return result


def shared(found: Any) -> set[str]:
    """Return the names of the arguments that all players share, if a function or class takes them."""
    with suppress(TypeError, ValueError):
        for argument in inspect.signature(found).parameters.values():
            for kind in get_args(argument.annotation):
                if kind in (Range, Common):
                    return set(kind.__annotations__)
    return set()


def shared_entries(names: set[str]) -> list[str]:
    """Return what the docstrings of `Range` and `Common` say about these arguments."""
    kinds = [Range, Common] if "out_of_range" in names else [Range]
    result: list[str] = []
    for line in [line for kind in kinds for line in (inspect.getdoc(kind) or "").splitlines()[2:]]:
        found = entries(line, set(Common.__annotations__))
        result.append(listed(*found[0]) if found else "      " + prose(line.strip()))
    return result


def fields(model: type[BaseModel], known: str) -> list[str]:
    """Return the fields of a reply of the service; known: its docstring."""
    base = model.__mro__[1]
    result = ["", ":Fields:"]
    for name, field in model.model_fields.items():
        if name in getattr(base, "model_fields", {}):
            continue
        kind = clean(stringify_annotation(field.annotation, "smart")).replace("typing.", "").replace("~", "")
        kind = re.sub(r"Annotated\[(\w+), FieldInfo\(.*\)\]", r"\1", re.sub(r"aftereffect\.[\w.]*\.(\w+)", r"\1", kind))
        kind = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " | "), kind)
        said = re.search(rf"^\s*- \*\*[^*]*\b{name}\b[^*]*\*\* – (.*(?:\n      .*)*)", known, re.M)
        words = said[1].replace("\n     ", "") if said else prose(field.description or "")
        result.append(f"    - **{name}**: ``{kind}``{' – ' if words else ''}{words}")
    if base.__name__ in BASES:
        result += ["", f"It has the fields of :py:class:`~aftereffect.service.messages.{base.__name__}`, too."]
    return result if len(result) > 2 else []


def clean(text: str) -> str:
    """Return types as a reader would write them, with links to where they are described."""
    text = ARRAY.sub("ndarray", ARRAY_LIKE.sub("ArrayLike", text))
    text = re.sub(r"<built-in function sleep>", "time.sleep", text)
    return re.sub(r"~(aftereffect\.[\w.]+)", lambda name: "~" + PUBLIC.get(name[1], name[1]), text)


def expanded(found: re.Match[str]) -> str:
    """Return the arguments that all players share, with their defaults: the settings of a player built without them."""
    settings = aftereffect.default_player(2, max_delay=0).settings | {"seed": None}
    kinds = (Range if found[1] == "Range" else Common).__annotations__
    words = (f"{name}: {stringify_annotation(kind, 'smart')} = {settings[name]!r}" for name, kind in kinds.items())
    return ", ".join(words)


def docstring(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring in place."""
    common = shared(found) if what in ("class", "function", "method") else set()
    record = inspect.isclass(found) and (issubclass(found, tuple | BaseModel) or is_dataclass(found))
    lines[:] = converted(lines, arguments(what, found) | common, "Fields" if record else "Parameters")
    if inspect.isclass(found) and issubclass(found, BaseModel):
        text = "\n".join(lines)
        kept = re.sub(r"^:Fields:\n(    .*\n?)*", "", text, flags=re.M)
        lines[:] = [*kept.splitlines(), *fields(found, text)]
    elif common and "**direction, low, high**" not in "\n".join(lines):
        items = [number + 1 for number, line in enumerate(lines) if line.startswith("    - **")]
        place = items[-1] if items else [*(n for n, line in enumerate(lines) if line.startswith(">>>")), len(lines)][0]
        if not items:
            lines[place:place] = ["", ":Parameters:", *shared_entries(common), ""]
        else:
            while place < len(lines) and lines[place].startswith("      "):
                place += 1
            lines[place:place] = shared_entries(common)


def skipped(app: Sphinx, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class describes."""
    text = str(getattr(found, "__doc__", "") or "")
    return True if text.startswith("Alias for field number") else None


def signature(
    app: Sphinx, what: str, name: str, found: Any, options: Any, taken: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """Simplify types, and show no arguments for protocols and for the service's replies, which nobody constructs."""
    if what == "class" and (getattr(found, "_is_protocol", False) or issubclass(found, BaseModel)):
        return "", None
    if what == "exception":
        return None
    return COMMON.sub(expanded, clean(taken)) if taken else taken, clean(returned) if returned else returned


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-skip-member", skipped)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
