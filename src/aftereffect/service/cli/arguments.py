"""What commands share: `command` makes one of a function; arguments and options become settings, rounds and totals.

Settings are read in `fields.py`, as those of forms, and validated in `settings.py`. This module handles only what is
specific to the command line: an optional EXPERIMENT before the other arguments, and files.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core.checks import integer, shown
from aftereffect.core.errors import InvalidArgument
from aftereffect.service import fields, totals
from aftereffect.service.cli.output import Answer, Format, exit_on_error, show
from aftereffect.service.errors import Refused
from aftereffect.service.messages import Summary, is_id
from aftereffect.service.settings import CarryOver, ExperimentSettings, PlanQuestion
from aftereffect.service.totals import MISSING

if TYPE_CHECKING:
    from aftereffect.service.protocol import Service

DEFAULT_STORE = "aftereffect.db"
MOST_LISTED = 20

Store = Annotated[
    str,
    typer.Option("--store", envvar="AFTEREFFECT_STORE", help="A file, a database URL, or a server's address."),
]
Form = Annotated[Format, typer.Option("--format", "-f", help="Print text or JSON.")]
Experiment = Annotated[
    str | None, typer.Argument(metavar="[EXPERIMENT]", help="Its id or name; not needed if there is only one.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="Which unit, if there are several.")]
Reported = Annotated[
    list[str],
    typer.Argument(metavar="[EXPERIMENT] ROUND TOTAL", help="The round, and its total or the word missing."),
]
Ahead = Annotated[bool, typer.Option("--ahead", help="Report it even if the date of the round is still to come.")]
Next = Annotated[bool, typer.Option("--next", help="Also open the next round, and show its arm.")]
Restate = Annotated[bool, typer.Option("--restate", help="Another total of a reported round is a correction.")]
Arm = Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] ARM", help="The name of the arm.")]
Column = Annotated[str | None, typer.Option(help="For a file: the name of this column.")]
Settings = dict[str, Any]
"""The settings that were given as options, as in a request; a command names those that it takes in an annotation."""


def command(verb: Callable[..., Answer | None]) -> Callable[..., None]:
    """Return the command of a function, which prints its answer, or an error, and ends with an exit status.

    For its parameter `service` the command has the option --store, and opens the service there; for `settings` it has
    an option for each setting in the annotation. A function that returns an answer gets the option --format.
    """
    signature = inspect.signature(verb)
    own = dict(signature.parameters)
    opens, settings = own.pop("service", None), own.pop("settings", None)
    names = () if settings is None else settings.annotation.__metadata__[0]
    own |= {name: _option(name, _help_of(name)) for name in names}
    own |= {} if opens is None else {"store": _option("store", Store, DEFAULT_STORE)}
    own |= {"form": _option("form", Form, Format.TABLE)} if signature.return_annotation is Answer else {}

    def run(**given: Any) -> None:
        form = given.get("form", Format.TABLE)
        with exit_on_error(form), ExitStack() as stack:
            if settings is not None:
                texts = {name: given.pop(name) for name in names}
                given["settings"] = fields.settings({name: text for name, text in texts.items() if text is not None})
            if opens is not None:
                # Imported here because it is slow and needs the extra.
                from aftereffect.service.local import open_service

                given["service"] = stack.enter_context(open_service(given.pop("store")))
            answer = verb(**{name: given[name] for name in signature.parameters})
            if answer is not None:
                show(form, answer.data, answer.lines)
                raise typer.Exit(answer.status)

    functools.update_wrapper(run, verb, assigned=("__name__", "__doc__"))
    options = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own.values()]
    run.__dict__["__signature__"] = inspect.Signature(options)
    return run


def _option(name: str, kind: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _help_of(setting: str) -> Any:
    known = CarryOver.model_fields | ExperimentSettings.model_fields | PlanQuestion.model_fields
    return Annotated[str | None, typer.Option(help=known[setting].description)]


def chosen(service: "Service", reference: str | None) -> str:
    """Return the id of the experiment with this id or name; without a reference, of the only one in the store.

    An id takes precedence over a name. An ambiguous name, or no reference if there are several experiments, is refused
    with a list of their ids.
    """
    if reference is not None and is_id(reference):
        try:
            return service.experiment(reference).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
    found = [one for one in service.all_experiments() if reference in (None, one.name)]
    if len(found) > 1:
        raise Refused("invalid", f"EXPERIMENT must be the id of one of {len(found)} experiments: {_listed(found)}")
    if not found and reference is None:
        raise Refused("not_found", "the store has no experiment yet; `aftereffect init` creates one")
    if not found:
        raise Refused("not_found", f"EXPERIMENT must be the id or name of an experiment, but got {shown(reference)}")
    return found[0].id


def _listed(found: Sequence[Summary]) -> str:
    listed = ", ".join(f"{one.id} ({one.name}, {one.state})" for one in found[:MOST_LISTED])
    return listed if len(found) <= MOST_LISTED else f"{listed} and {len(found) - MOST_LISTED} more"


def split(words: Sequence[str], rest: str) -> tuple[str | None, list[str]]:
    """Return the EXPERIMENT (None if omitted) and the words after it. rest: their names, such as "ROUND TOTAL".

    >>> split(["mailings", "3", "0.5"], "ROUND TOTAL")
    ('mailings', ['3', '0.5'])
    """
    wanted = len(rest.split())
    for word in words:
        if word.startswith("--"):
            raise InvalidArgument(f"options must be those of the command, but got {word!r}")
    if len(words) not in (wanted, wanted + 1):
        raise InvalidArgument(f"the arguments must be [EXPERIMENT] {rest}, but got {shown(' '.join(words))}")
    return words[0] if len(words) > wanted else None, list(words[-wanted:])


def report(words: Sequence[str]) -> tuple[str | None, int, float | None]:
    """Return experiment, round and total of a report; the total `missing` is None.

    >>> report(["17", "8421"]), report(["mailings", "17", "missing"])
    ((None, 17, 8421.0), ('mailings', 17, None))
    """
    experiment, (number, total) = split(words, "ROUND TOTAL")
    round_, name = round_number(number), f"TOTAL (or the word {MISSING})"
    return experiment, round_, None if total.lower() == MISSING else totals.number(name, total)


def round_number(text: str) -> int:
    """Return the number of a round."""
    return integer("ROUND", totals.whole("ROUND", text), low=1)


def text_of(name: str) -> str:
    """Return the text of a file of totals; "-" is standard input."""
    if name == "-":
        raw = sys.stdin.buffer.read(totals.MOST_TEXT + 1)
    else:
        with Path(name).open("rb") as file:
            raw = file.read(totals.MOST_TEXT + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"FILE must be UTF-8 text, but byte {error.start} is not") from None
