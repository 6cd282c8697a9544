"""Which experiment is meant: by id, by name where that is unambiguous, or the only one there is."""

import re
from collections.abc import Iterator

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused
from aftereffect.service.protocol import Service
from aftereffect.service.replies import Overview

LOOKS_LIKE_AN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
PAGE = 1000
LISTED = 20


def everything(service: Service) -> Iterator[Overview]:
    """Yield all experiments, page by page."""
    after: str | None = None
    while True:
        page = service.experiments(after=after, limit=PAGE)
        yield from page.items
        after = page.next
        if after is None:
            return


def chosen(service: Service, reference: str | None) -> str:
    """Return the id of the experiment with this id or name; without a reference, of the only one there is.

    An id wins over a name. A name that several bear, or no name where several are, is refused with their ids.
    """
    if reference is None:
        found = list(everything(service))
        if not found:
            raise Refused("not_found", "the store holds no experiment yet; `aftereffect init` makes one")
        if len(found) > 1:
            raise Refused("invalid", f"EXPERIMENT must say which of {len(found)} experiments: {_listed(found)}")
        return found[0].id
    if LOOKS_LIKE_AN_ID.fullmatch(reference):
        try:
            return service.experiment(reference).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
    named = [one for one in everything(service) if one.name == reference]
    if not named:
        raise Refused("not_found", f"EXPERIMENT must be the id or name of an experiment, but got {shown(reference)}")
    if len(named) > 1:
        raise Refused(
            "invalid",
            f"EXPERIMENT must be an id where several experiments are named {reference!r}: {_listed(named)}",
        )
    return named[0].id


def _listed(found: list[Overview]) -> str:
    shown = ", ".join(f"{one.id} ({one.name}, {one.state})" for one in found[:LISTED])
    return shown if len(found) <= LISTED else f"{shown} and {len(found) - LISTED} more"
