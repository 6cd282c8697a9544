"""Ask: open the next round, or return the one that is open, always the same."""

from typing import Any

from aftereffect.service.answers import Done, checked_unit, event, fingerprint
from aftereffect.service.commands import Ask
from aftereffect.service.errors import Refused
from aftereffect.service.progress import Progress
from aftereffect.service.rounds import OPEN, Played, Row

REASONS = {
    "draft": "it is a draft: start it first",
    "paused": "it is paused: resume it first",
    "finished": "it is finished: no more rounds are opened",
}


def ask(progress: Progress, command: Ask, at: str) -> Done:
    """Answer with the arm of a unit; with no unit named, of the first that is not yet told, and with everybody's."""
    if progress.phase != "running":
        reason = REASONS[progress.phase]
        raise Refused("wrong_state", f"the experiment must be running to ask, but {reason}", state=progress.phase)
    named = None if command.unit is None else checked_unit(progress, command.unit)
    played = progress.open
    if played is not None:
        u = _first_open(played) if named is None else named
        return Done(answer(progress, played, u, named is None), None, [])
    played = progress.open_round(at)
    if progress.started_at is None:
        progress.started_at = at
    u = named or 0
    progress.asked = rows = [played.row(progress.settings, v) for v in range(progress.n_units)]
    body: dict[str, Any] = {"arms": list(played.arms), "block": played.block}
    if played.arms is not played.drawn:
        body["drawn"] = list(played.drawn)
    if played.draw:
        body["probabilities"] = fingerprint(progress.odds)
    found = answer(progress, played, u, named is None, rows[u])
    return Done(found, event("ask", at, body, played.number, command.unit), rows)


def answer(progress: Progress, played: Played, u: int, everybody: bool, row: Row | None = None) -> dict[str, Any]:
    """Return the row of a unit, with the arms of all units where several play and none was named."""
    found = row.copy() if row is not None else played.row(progress.settings, u)
    found["warmup"] = played.warm
    found["state"] = progress.phase
    if everybody and progress.n_units > 1:
        settings = progress.settings
        found["arms"] = {unit: settings.arms[i] for unit, i in zip(settings.units, played.arms, strict=True)}
    return found


def _first_open(played: Played) -> int:
    return next(u for u, report in enumerate(played.reports) if report.status == OPEN)
