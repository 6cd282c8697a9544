"""Answers as text: a few plain lines a person can act on, or the JSON that the server would send."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from aftereffect.service.replies import Json, Overview, Report, Turn, Verdict
from aftereffect.service.verbs.exits import Format


def show(form: Format, data: Json | Sequence[Json], lines: Iterable[str]) -> None:
    """Print an answer as JSON or as lines."""
    if form is Format.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False, default=dict))
        return
    for line in lines:
        typer.echo(line)


def columns(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; numbers to the right.

    >>> columns(["arm", "plays"], [["letter", "12"], ["email", "3"]])
    ['arm     plays', 'letter     12', 'email       3']
    """
    every = [heading, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(heading))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(heading))]
    aligned = [
        [cell.rjust(width) if end else cell.ljust(width) for cell, width, end in zip(row, widths, right, strict=True)]
        for row in every
    ]
    return ["  ".join(row).rstrip() for row in aligned]


def _is_number(text: str) -> bool:
    return not text.strip("0123456789.,%+-") and text != ""


def plain(number: float | None) -> str:
    """Return a total as people write it.

    >>> plain(8421.0), plain(0.25), plain(None)
    ('8421', '0.25', 'missing')
    """
    if number is None:
        return "missing"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))


def said(*parts: str | None) -> str:
    """Return a command to type, with the words that need it quoted.

    >>> said("tell", "my shop", "3", "TOTAL")
    "aftereffect tell 'my shop' 3 TOTAL"
    """
    return shlex.join(["aftereffect", *(part for part in parts if part is not None)])


def made(view: Overview) -> list[str]:
    """Say what was made, what it leads to, and what to do next."""
    draft = view.state == "draft"
    sentences = view.plan.get("sentences", [])
    return [
        f"Experiment {view.name!r} is {'a draft' if draft else view.state}. Its id: {view.id}",
        *(f"  {sentence}" for sentence in sentences),
        f"Next: {said('start' if draft else 'ask', view.name)}",
    ]


def turn(found: Turn, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what to play, why, and how to report it; `experiment` and `unit` as they were asked for."""
    several = unit is not None or (found.arms is not None and len(found.arms) > 1)
    who = f" in {found.unit}" if several else ""
    when = f" ({found.date})" if found.date else ""
    lines = [f"Round {found.round}{when}: play {found.arm}{who}.", *([f"  {found.why}"] if found.why else [])]
    if found.arms is not None:
        lines += [f"  {line}" for line in columns(["unit", "arm"], [[*pair] for pair in found.arms.items()])]
    whose = ("--unit", found.unit) if several else ()
    return [*lines, f"Report it with: {said('tell', experiment, str(found.round), 'TOTAL', *whose)}"]


def report(found: Report, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what became of a report, and what is next."""
    who = f" ({unit})" if unit is not None else ""
    lines = [f"Round {found.round}{who}: {_taken(found)}{' It was known already.' if found.repeated else ''}"]
    if found.update:
        lines.append("  The block has ended and was learned from; the next ask draws an arm.")
    if found.state == "finished":
        return [*lines, f"The experiment is finished. Next: {said('status', experiment)}"]
    waiting = f"Round {found.open_round} waits for a report. " if found.open_round is not None else ""
    return [*lines, f"{waiting}Next: {said('ask', experiment)}"]


def _taken(found: Report) -> str:
    if found.total is None:
        return "closed as missing; windows that hold it are void, the arm stays."
    if found.status == "void":
        return f"{plain(found.total)} is outside of what the range allows; kept, but not learned from."
    return f"{plain(found.total)} is recorded for {found.arm}."


def changed(view: Overview) -> list[str]:
    """Say in which state an experiment is now."""
    return [f"Experiment {view.name!r} is {view.state}.", *_winner(view)]


def _winner(view: Overview) -> list[str]:
    return [str(view.winner["words"])] if view.winner and view.winner.get("words") else []


def status(view: Overview) -> list[str]:
    """Show an experiment: where it is, what it has learned, what is guaranteed, what needs attention."""
    where = f"round {view.round}" + (", open: report it" if view.open_round is not None else "")
    updates = "" if view.updates is None else f", {view.updates} updates"
    rows = [
        [arm, f"{100 * view.probabilities.get(arm, 0.0):.1f}%", str(view.plays.get(arm, 0))] for arm in view.arms
    ]
    others = {word: number for word, number in view.counts.items() if number and word != "reports"}
    counts = [f"{number} {word.replace('_', ' ')}" for word, number in others.items()]
    lines = [f"{view.name} ({view.id}): {view.state}, {where}{updates}"]
    lines += columns(["arm", "probability", "plays"], rows)
    lines.append(f"Reports: {', '.join([str(view.counts.get('reports', 0)), *counts])}")
    if view.away:
        lines.append(f"Away: {', '.join(view.away)}")
    lines += [f"Attention: {alarm}" for alarm in view.alarms]
    if view.guarantee and view.guarantee.get("words"):
        lines.append(f"Guarantee: {view.guarantee['words']}")
    return [*lines, *_winner(view)]


def listed(found: Sequence[Overview]) -> list[str]:
    """List experiments, one a line."""
    if not found:
        return ["No experiment yet; `aftereffect init` makes one."]
    rows = [[one.id, one.name, one.state, str(one.round)] for one in found]
    return columns(["id", "name", "state", "round"], rows)


def verdicts(found: Sequence[Verdict]) -> list[str]:
    """Say for each experiment whether its log replays to what is stored."""
    if not found:
        return ["No experiment to verify."]
    return [
        f"{one.experiment}: " + (f"ok, rounds: {one.rounds}" if one.ok else f"CORRUPT: {one.finding}") for one in found
    ]


def restored_tokens(valid: int) -> list[str]:
    """Say that a restored store lets in whom it let in when it was backed up."""
    if not valid:
        return []
    who = "1 token is" if valid == 1 else f"{valid} tokens are"
    return [
        f"{who} valid as when the backup was made, also where revoked since: see `aftereffect token list`; "
        "--without-tokens leaves them out."
    ]


def tokens(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """List tokens: what they are called and may do, never what they are."""
    if not found:
        return ["No token yet; `aftereffect token create NAME --scope play` makes one."]
    rows = [
        [str(one["id"]), str(one["name"]), " ".join(one["scopes"]), "revoked" if one.get("revoked_at") else "valid"]
        for one in found
    ]
    return columns(["id", "name", "scopes", "state"], rows)
