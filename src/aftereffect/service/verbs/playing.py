"""The verbs of every day: init, ask, tell, amend, status."""

from typing import Annotated

import typer

from aftereffect.service.choosing import chosen, everything
from aftereffect.service.opening import DEFAULT_STORE, opened
from aftereffect.service.settings import checked_settings
from aftereffect.service.verbs import showing, words
from aftereffect.service.verbs.exits import Format, speaking
from aftereffect.service.verbs.options import (
    Direction,
    Experiment,
    Form,
    HalfLife,
    Horizon,
    MaxDelay,
    Player,
    Reported,
    RoundLength,
    Store,
    Unit,
    Window,
)


def init(
    name: Annotated[str, typer.Argument(help="What to call the experiment.")],
    arm: Annotated[list[str], typer.Option("--arm", help="An arm's name; give two or more.")],
    low: Annotated[float, typer.Option(help="The least that one action's total effect can be.")] = 0.0,
    high: Annotated[float, typer.Option(help="The most that one action's total effect can be.")] = 1.0,
    window: Window = None,
    half_life: HalfLife = None,
    max_delay: MaxDelay = None,
    round_length: RoundLength = None,
    units: Annotated[str | None, typer.Option(help="How many units, or their names with commas between.")] = None,
    horizon: Horizon = None,
    direction: Direction = "maximize",
    player: Player = "default",
    seed: Annotated[int | None, typer.Option(help="Of all draws; drawn if not given.")] = None,
    start_date: Annotated[str | None, typer.Option(help="The date of round 1, as 2026-01-31.")] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Do not start it yet.")] = False,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Make an experiment: what can be done, what it can bring, and for how long it lingers."""
    with speaking(form):
        plain = {"name": name, "arms": arm, "low": low, "high": high, "direction": direction, "player": player}
        optional = {"horizon": horizon, "seed": seed, "start_date": start_date, "draft": draft or None}
        carried = words.carry_over(window, half_life, max_delay, round_length)
        settings = words.settings(carried, units, {**plain, **optional})
        # Before a store is made for it.
        checked_settings(settings)
        with opened(store, create=True) as service:
            made = service.create(**settings)
        showing.show(form, made.data, showing.made(made))


def ask(
    experiment: Experiment = None, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE
) -> None:
    """Say what to play now. Ask as often as you like: until the round is told, the answer stays the same."""
    with speaking(form), opened(store) as service:
        turn = service.ask(chosen(service, experiment), unit)
        showing.show(form, turn.data, showing.turn(turn, experiment, unit))


def tell(reported: Reported, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Report the total of a round, or that it is missing. The same report again is accepted again."""
    with speaking(form):
        experiment, number, total = words.report(reported)
        with opened(store) as service:
            found = service.tell(chosen(service, experiment), number, total, unit)
        showing.show(form, found.data, showing.report(found, experiment, unit))


def amend(reported: Reported, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Correct a total, or bring a late one, while the block of its round is open."""
    with speaking(form):
        experiment, number, total = words.report(reported)
        with opened(store) as service:
            found = service.amend(chosen(service, experiment), number, total, unit)
        showing.show(form, found.data, showing.report(found, experiment, unit))


def status(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Show an experiment; without a name, the only one there is, or the list of all."""
    with speaking(form), opened(store) as service:
        if experiment is None:
            found = list(everything(service))
            if len(found) != 1:
                every = {"items": [dict(one.data) for one in found], "next": None}
                showing.show(form, every, showing.listed(found))
                return
            experiment = found[0].id
        view = service.experiment(chosen(service, experiment))
        showing.show(form, view.data, showing.status(view))
