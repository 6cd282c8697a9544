"""What is handed to the writer, and how answers find their way back to threads and to event loops."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from sqlalchemy import Connection

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Command
from aftereffect.service.settings import ExperimentSettings

Answer = dict[str, Any] | Refused
Sent = bytes | Refused
Outcome = Answer | Sent
"""What became of an item: its answer, as it is or in the form it is sent in, or why there is none."""
Form = Callable[[str, dict[str, Any]], bytes]
"""Puts the answer of an experiment, whose id comes first, into the form it is sent in. Lists share a transaction only
if they have the very same one, so it should be a function of a module."""


class Creation(NamedTuple):
    """Make an experiment with these settings."""

    settings: ExperimentSettings


class Work(NamedTuple):
    """Do something else in the writer's transaction: `act` gets its connection and returns the answer."""

    act: Callable[[Connection], dict[str, Any]]


Item = tuple[str, Command | Creation | Work]


class Job:
    """Items to run, in order, and who waits for the answers: a thread, or a task of an event loop.

    form: the form of the answers, None for answers as they are. started: how many of the items have been taken up.
    """

    __slots__ = ("_future", "_promise", "answers", "form", "items", "loop", "started")

    def __init__(
        self, items: Sequence[Item], loop: asyncio.AbstractEventLoop | None = None, form: Form | None = None
    ) -> None:
        """Make what the one who waits can wait for."""
        self.items, self.loop, self.form = items, loop, form
        self.answers: list[Outcome] = []
        self.started = 0
        self._future: Future[list[Outcome]] | None = Future() if loop is None else None
        self._promise: asyncio.Future[list[Outcome]] | None = None if loop is None else loop.create_future()

    def result(self) -> list[Outcome]:
        """Wait, in a thread, until all is on the disk."""
        if self._future is None:
            raise RuntimeError("this job was made for an event loop")
        return self._future.result()

    async def promise(self) -> list[Outcome]:
        """Wait, in an event loop, until all is on the disk."""
        if self._promise is None:
            raise RuntimeError("this job was made for a thread")
        return await self._promise

    def settle(self) -> None:
        """Hand over the answers, where the one who waits is."""
        if self._future is not None:
            self._future.set_result(self.answers)
        # A request that was given up has a cancelled promise.
        elif self._promise is not None and not self._promise.done():
            self._promise.set_result(self.answers)


def deliver(jobs: Iterable[Job]) -> None:
    """Give every job its answers; an event loop is woken once for all of its jobs."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.loop is None:
            job.settle()
        else:
            loops.setdefault(job.loop, []).append(job)
    for loop, mine in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:
            # The loop is closed: nobody waits any more, and what was done stays done.
            continue


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()
