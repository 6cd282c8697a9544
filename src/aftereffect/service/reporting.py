"""Tell and Amend: what is accepted, what is a repetition, what is a conflict and what comes too late."""

from collections.abc import Mapping
from typing import Any

from aftereffect.service.answers import Done, checked_round, checked_total, checked_unit, event, fingerprint
from aftereffect.service.commands import Amend, Tell
from aftereffect.service.errors import Refused
from aftereffect.service.progress import Progress
from aftereffect.service.rounds import MISSING, OPEN, ROW, Row


def tell(progress: Progress, command: Tell, at: str) -> Done:
    """Take a report for the open round; repeated with the same total it is answered again."""
    u = checked_unit(progress, command.unit)
    total = checked_total(command.total)
    number = checked_round(progress, command.round)
    played = progress.open
    if played is None or played.number != number or played.reports[u].status != OPEN:
        return _again(progress, number, u, total)
    status = progress.record(played, u, total, at)
    body: dict[str, Any] = {"total": total, "status": status, "closed": progress.waiting == 0}
    rows = close(progress, u, body, at) if progress.waiting == 0 else [progress.told(played, u)]
    unit = progress.settings.units[u]
    return Done(_answer(progress, rows[0], False), event("tell", at, body, number, unit), rows)


def close(progress: Progress, u: int, body: dict[str, Any], at: str) -> list[Row]:
    """Close the round that is complete, write into `body` what came of it, and return the rows that changed."""
    outcome, rows = progress.close_round(u)
    body |= outcome
    if outcome["update"]:
        body["probabilities"] = fingerprint(progress.odds)
    if progress.phase == "finished":
        progress.finished_at = at
        body["state"] = "finished"
    return rows


def amend(progress: Progress, command: Amend, at: str) -> Done:
    """Correct a report, or bring a late one, while the block of its round is open."""
    u = checked_unit(progress, command.unit)
    total = checked_total(command.total)
    number = checked_round(progress, command.round)
    if number < progress.block_start or progress.block_closed:
        raise Refused(
            "closed",
            f"round must be in the open block to be amended, but the block of round {number} has been closed and "
            "learned from: its total stays as it was reported",
            round=number,
        )
    played = progress.memory.get(number)
    before = _recalled(progress, number, u) if played is None else played.row(progress.settings, u)
    if before["status"] == OPEN:
        raise Refused("conflict", f"round must have a report to be amended, but round {number} waits for one: tell it")
    if same(before, total):
        return Done(_answer(progress, before, True), None, [])
    body: dict[str, Any] = {"total": total, "was": before["total"], "was_status": before["status"]}
    if played is None:
        body["recalled"] = before
        row = {**before, "total": total, "status": progress.status_of(total), "told_at": at}
        progress.recount(before["status"], before["total"], row["status"], total)
    else:
        progress.correct(played, u, total, at)
        row = played.row(progress.settings, u)
    body["status"] = row["status"]
    return Done(_answer(progress, row, False), event("amend", at, body, number, row["unit"]), [row])


def same(row: Mapping[str, Any], total: float | None) -> bool:
    """Whether a round has been reported with this very total, or closed as missing like this report."""
    if total is None:
        return bool(row["status"] == MISSING)
    return bool(row["status"] != MISSING and row["total"] == total)


def _again(progress: Progress, number: int, u: int, total: float | None) -> Done:
    """Answer a report for a round that has one."""
    played = progress.memory.get(number)
    row = _recalled(progress, number, u) if played is None else played.row(progress.settings, u)
    if same(row, total):
        return Done(_answer(progress, row, True), None, [])
    has = "was closed as missing" if row["status"] == MISSING else f"was reported as {row['total']!r}"
    given = "missing" if total is None else repr(total)
    amendable = number >= progress.block_start and not progress.block_closed
    then = "amend it to change that" if amendable else "its block is closed and learned from, so it stays as it is"
    raise Refused(
        "conflict",
        f"total must be the one already there, but round {number} {has} and now {given} came: {then}",
        round=number,
        unit=row["unit"],
        reported=row["total"],
        amendable=amendable,
    )


def _recalled(progress: Progress, number: int, u: int) -> Row:
    """Return the row of a round that is no longer in memory."""
    found = progress.lookup(number, progress.settings.units[u]) if progress.lookup is not None else None
    if found is None:
        raise Refused("closed", f"round must be a recent one, but round {number} is no longer at hand", round=number)
    return {name: found[name] for name in ROW}


def _answer(progress: Progress, row: Row, repeated: bool) -> dict[str, Any]:
    found = row.copy()
    found["repeated"], found["state"], found["open_round"] = repeated, progress.phase, progress.open_round_number()
    return found
