"""An experiment: commands in, answers, events and rows out. Pure and deterministic: no clock, no I/O, all in memory.

    draft ──Start──► running ◄──Resume── paused        Ask opens a round, Tell closes it when the last unit
                        │  ──Pause──►      │           is told; at the horizon, or by Finish, it is finished.
                        └──────Finish──────┴──► finished

A pause opens no rounds; the round that is open stays open, and reports and corrections are still taken. After a
resume the next max_delay rounds (and the one left open, if effects linger) are warm-up. Finish closes an open round
as missing where it has no report. Corrections are taken in every state, as long as their block is open.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aftereffect.core import checks, saved
from aftereffect.core.errors import AftereffectError
from aftereffect.service import asking, changing, commands, keeping, reporting, view
from aftereffect.service.answers import Done
from aftereffect.service.commands import Amend, Ask, Away, Back, Command, Finish, Pause, Resume, Start, Tell
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.progress import Progress
from aftereffect.service.rounds import Row
from aftereffect.service.settings import ExperimentSettings

__all__ = ["Done", "Experiment"]

Lookup = Callable[[int, str], Mapping[str, Any] | None]

HANDLERS: dict[type[Any], Callable[[Progress, Any, str], Done]] = {
    Start: changing.start,
    Ask: asking.ask,
    Tell: reporting.tell,
    Amend: reporting.amend,
    Pause: changing.pause,
    Resume: changing.resume,
    Away: changing.away,
    Back: changing.back,
    Finish: changing.finish,
}


class Experiment:
    """An experiment with these settings, whose seed must be set.

    lookup: rounds that are no longer in memory are asked for here, (round, unit) → row or None. Whoever stores the
    rows may set it; without it, a report repeated after a very long time is answered with code "closed".

    >>> from aftereffect.service.settings import checked_settings
    >>> given = {"name": "Mail", "arms": ["short", "long"], "max_delay": 0, "seed": 1}
    >>> experiment = Experiment(checked_settings(given))
    >>> asked = experiment.do(Ask(), "2026-01-01T00:00:00Z").answer
    >>> told = experiment.do(Tell(asked["round"], 0.75), "2026-01-01T20:00:00Z")
    >>> told.answer["status"], told.event["kind"], told.rows[0]["measured"]
    ('reported', 'tell', True)
    """

    __slots__ = ("progress", "settings")

    def __init__(self, settings: ExperimentSettings) -> None:
        """Stand before round 1, as a draft or running."""
        self.settings = settings
        self.progress = Progress(settings)

    @property
    def lookup(self) -> Lookup | None:
        """Where rounds are found that are no longer in memory."""
        return self.progress.lookup

    @lookup.setter
    def lookup(self, find: Lookup | None) -> None:
        self.progress.lookup = find

    def do(self, command: Command, at: str) -> Done:
        """Carry out a command at a moment, or raise Refused with nothing changed."""
        handler = HANDLERS.get(type(command))
        if handler is None:
            raise Refused("invalid", f"command must be one of {', '.join(commands.KINDS)}, but got {command!r}")
        return handler(self.progress, command, at)

    def view(self) -> dict[str, Any]:
        """Return what people want to know."""
        return view.view(self.progress)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, as plain JSON; `from_state` goes on bit for bit."""
        return keeping.state(self.progress)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Experiment":
        """Return the experiment that `state()` described."""
        return cls._of(keeping.resumed(state))

    @classmethod
    def _of(cls, progress: Progress) -> "Experiment":
        experiment = cls.__new__(cls)
        experiment.settings, experiment.progress = progress.settings, progress
        return experiment

    def digest(self) -> str:
        """Return the SHA-256 of the state."""
        return saved.digest(self.state())

    def replay(self, event: Mapping[str, Any]) -> list[Row]:
        """Carry out a stored event again and compare all that came of it, to the last bit."""
        lookup = self.lookup
        try:
            command = keeping.command_of(event)
            recalled = event["body"].get("recalled")
            self.lookup = lambda _round, _unit: recalled
            done = self.do(command, event["at"])
        except Corrupt:
            raise
        except (AftereffectError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"an event must be possible where it stands, but {error!r}") from None
        finally:
            self.lookup = lookup
        if done.event != dict(event):
            raise Corrupt(f"an event must come out as stored, but {_difference(done.event, event)}")
        return done.rows


def _difference(found: Mapping[str, Any] | None, stored: Mapping[str, Any]) -> str:
    """Say where what came out differs from what is stored."""
    if found is None:
        return f"nothing came of it: {checks.shown(dict(stored))}"
    for mine, other in ((found["body"], stored["body"]), (found, stored)):
        for name in sorted({*mine, *other} - {"body"}):
            if mine.get(name) != other.get(name):
                there, here = checks.shown(other.get(name)), checks.shown(mine.get(name))
                return f"{name} is {there} where it should be {here}"
    return f"it has other fields: {checks.shown(dict(stored))}"
