"""The state of an experiment as plain JSON, and back; events back into commands."""

from collections.abc import Mapping
from typing import Any

from aftereffect.core import saved
from aftereffect.core.errors import AftereffectError
from aftereffect.players.restore import restore
from aftereffect.service import commands
from aftereffect.service.errors import Corrupt
from aftereffect.service.outcome import Tally
from aftereffect.service.progress import COUNTS, Progress
from aftereffect.service.settings import ExperimentSettings

KIND = "Experiment"
# What is saved as it is.
PLAIN = (
    *("phase", "last", "block", "block_start", "block_closed", "updates", "warm_until", "spoiled"),
    *("sum", "started_at", "finished_at", "plays"),
)
FIELDS = ("settings", "panel", *PLAIN, "tainted", "away", "counts", "tallies", "rounds", "open", "dates")


def state(progress: Progress) -> dict[str, Any]:
    """Return all there is to know, with kind, version and digest."""
    fields = {name: getattr(progress, name) for name in PLAIN}
    dates = progress.dates
    return saved.seal(
        KIND,
        {
            **fields,
            "plays": list(progress.plays),
            "settings": progress.settings.to_json(),
            "panel": progress.panel.state(),
            "tainted": {str(u): limit for u, limit in enumerate(progress.tainted) if limit},
            "away": sorted(progress.away),
            "counts": [progress.counts[name] for name in COUNTS],
            "tallies": [tally.state() for tally in progress.tallies],
            "rounds": progress.memory.state(),
            "open": None if progress.open is None else progress.waiting,
            "dates": [dates.shift, dates.paused_at],
        },
    )


def resumed(found: Mapping[str, Any]) -> Progress:
    """Return an experiment's progress as it was when its state was taken."""
    try:
        fields = saved.unseal(found, KIND, FIELDS)
        progress = Progress(ExperimentSettings.from_json(fields["settings"]), restore(fields["panel"]))
        for name in PLAIN:
            setattr(progress, name, fields[name])
        progress.plays = list(fields["plays"])
        for u, limit in fields["tainted"].items():
            progress.tainted[int(u)] = limit
        progress.away = set(fields["away"])
        progress.counts = dict(zip(COUNTS, fields["counts"], strict=True))
        progress.tallies = [Tally(*numbers) for numbers in fields["tallies"]]
        progress.memory.resume(fields["rounds"])
        if fields["open"] is not None:
            progress.open, progress.waiting = progress.memory.rounds[progress.last], fields["open"]
        progress.dates.shift, progress.dates.paused_at = fields["dates"]
    except Corrupt:
        raise
    except (AftereffectError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"a state must hold what state() saved, but {error}") from None
    return progress


def command_of(event: Mapping[str, Any]) -> commands.Command:
    """Return the command a stored event came from."""
    kind, body = event["kind"], event["body"]
    fields: dict[str, Any] = {"kind": kind}
    if kind == "ask":
        fields["unit"] = event["unit"]
    elif kind in ("tell", "amend"):
        fields |= {"round": event["round"], "total": body["total"], "unit": event["unit"]}
    elif kind in ("away", "back"):
        fields["arm"] = body["arm"]
    return commands.from_json(fields)
