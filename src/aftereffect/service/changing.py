"""Start, pause, resume, finish; arms that go away and come back. Saying what already holds changes nothing."""

from typing import Any

from aftereffect.core import checks
from aftereffect.service.answers import Done, event
from aftereffect.service.commands import Away, Back, Finish, Pause, Resume, Start
from aftereffect.service.errors import Refused
from aftereffect.service.progress import Progress
from aftereffect.service.reporting import close
from aftereffect.service.rounds import OPEN, Row


def start(progress: Progress, command: Start, at: str) -> Done:
    """Let a draft run."""
    if progress.phase == "running":
        return _done(progress)
    _require(progress, "draft", "start")
    progress.phase = "running"
    progress.started_at = at
    return _done(progress, event("start", at, {}))


def pause(progress: Progress, command: Pause, at: str) -> Done:
    """Open no more rounds; the one that is open can still be told."""
    if progress.phase == "paused":
        return _done(progress)
    _require(progress, "running", "pause")
    progress.phase = "paused"
    progress.dates.pause(at)
    return _done(progress, event("pause", at, {"last": progress.last}))


def resume(progress: Progress, command: Resume, at: str) -> Done:
    """Go on. What happened in the pause still arrives for d rounds: they are recorded, not learned from."""
    if progress.phase == "running":
        return _done(progress)
    _require(progress, "paused", "resume")
    progress.phase = "running"
    progress.dates.resume(at)
    d, played = progress.settings.max_delay, progress.open
    rows: list[Row] = []
    if d > 0:
        progress.warm_until = progress.last + d
        if played is not None:
            # Nobody can say whether this round was played before the pause or after it.
            played.warm = True
            played.withheld = [True] * progress.n_units
            progress.asked = []
            rows = [played.row(progress.settings, u) for u in range(progress.n_units)]
    return _done(progress, event("resume", at, {"warm_until": progress.warm_until}), rows)


def away(progress: Progress, command: Away, at: str) -> Done:
    """Take an arm out for now; from here on the guarantee is void."""
    arm = _arm(progress, command.arm)
    if arm in progress.away:
        return _done(progress)
    _require_unfinished(progress)
    if len(progress.away) + 1 == len(progress.settings.arms):
        raise Refused("conflict", f"at least one arm must stay, but {command.arm!r} is the last one that is there")
    progress.away.add(arm)
    progress.spoiled = True
    return _done(progress, event("away", at, {"arm": command.arm}))


def back(progress: Progress, command: Back, at: str) -> Done:
    """Let an arm be played again, from the next round on."""
    arm = _arm(progress, command.arm)
    if arm not in progress.away:
        return _done(progress)
    _require_unfinished(progress)
    progress.away.discard(arm)
    return _done(progress, event("back", at, {"arm": command.arm}))


def finish(progress: Progress, command: Finish, at: str) -> Done:
    """End the experiment; what has no report in the open round is closed as missing."""
    if progress.phase == "finished":
        return _done(progress)
    body: dict[str, Any] = {"last": progress.last}
    rows: dict[tuple[int, str], Row] = {}
    played = progress.open
    if played is not None:
        units = [u for u, report in enumerate(played.reports) if report.status == OPEN]
        for u in units:
            progress.record(played, u, None, at)
        changed = close(progress, units[-1], body, at)
        changed += [played.row(progress.settings, u) for u in units]
        rows = {(row["round"], row["unit"]): row for row in changed}
    progress.phase = "finished"
    progress.finished_at = at
    return _done(progress, event("finish", at, body), list(rows.values()))


def _done(progress: Progress, found: dict[str, Any] | None = None, rows: list[Row] | None = None) -> Done:
    settings = progress.settings
    answer = {
        "state": progress.phase,
        "round": progress.last,
        "open_round": progress.open_round_number(),
        "away": [settings.arms[i] for i in sorted(progress.away)],
        "warm_until": progress.warm_until,
        "repeated": found is None,
    }
    return Done(answer, found, rows or [])


def _require(progress: Progress, phase: str, verb: str) -> None:
    if progress.phase != phase:
        raise Refused(
            "wrong_state",
            f"the experiment must be {phase} to {verb} it, but it is {progress.phase}",
            state=progress.phase,
        )


def _require_unfinished(progress: Progress) -> None:
    if progress.phase == "finished":
        raise Refused(
            "wrong_state", "arms can go away or come back until the experiment is finished, but it is", state="finished"
        )


def _arm(progress: Progress, name: Any) -> int:
    found = progress.arm_index.get(name) if isinstance(name, str) else None
    if found is None:
        arms = checks.shown(list(progress.settings.arms))
        raise Refused("not_found", f"arm must be one of {arms}, but got {checks.shown(name)}")
    return found
