"""Every player that a problem has room for, built: what studies read until they read the registry."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from aftereffect.core import checks
from aftereffect.players import registry
from aftereffect.players.registry import Problem

__all__ = ["Entry", "Problem", "catalogue", "entries"]


class Entry(NamedTuple):
    """A player by its label; needs: the assumptions it uses."""

    name: str
    player: Any
    needs: tuple[str, ...]


def catalogue(problem: Problem) -> list[Entry]:
    """Return all players that the problem has room for, unplayed.

    >>> names = [entry.name for entry in catalogue(Problem(n_arms=3, max_delay=2, horizon=1000))]
    >>> names[:3]
    ['wrapper, Tsallis FTRL', 'wrapper, Exp3', 'wrapper, Tsallis-INF']
    >>> "ODAAF" in names                         # no mean delay is known
    False
    """
    return list(entries(problem))


def entries(problem: Problem) -> Iterator[Entry]:
    """Yield the same players, each made when it is asked for."""
    checks.integer("n_arms", problem.n_arms, low=2)
    for name, settings in registry.COMPARED:
        entry = registry.find(name)
        if not entry.lacks(problem, settings):
            labels = ("labels",) if entry.labelled else ()
            yield Entry(entry.label(settings), entry.build(problem, **settings), (*labels, *entry.needs(settings)))
