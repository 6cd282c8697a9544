"""The verbs that steer an experiment, and the one to use before it: start, pause, resume, finish, away, back, plan."""

from typing import Annotated

import typer

from aftereffect.service.choosing import chosen
from aftereffect.service.experiment.plan import planned
from aftereffect.service.opening import DEFAULT_STORE, opened
from aftereffect.service.verbs import showing, words
from aftereffect.service.verbs.exits import Format, speaking
from aftereffect.service.verbs.options import (
    Away,
    Direction,
    Experiment,
    Form,
    HalfLife,
    Horizon,
    MaxDelay,
    Player,
    RoundLength,
    Store,
    Window,
)


def start(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Start a draft."""
    with speaking(form), opened(store) as service:
        view = service.start(chosen(service, experiment))
        showing.show(form, view.data, showing.changed(view))


def pause(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Pause: no round opens until you resume."""
    with speaking(form), opened(store) as service:
        view = service.pause(chosen(service, experiment))
        showing.show(form, view.data, showing.changed(view))


def resume(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Go on after a pause.

    Effects fade while you pause, so the first d totals lack what earlier rounds would have added: they are a warm-up,
    recorded and not learned from.
    """
    with speaking(form), opened(store) as service:
        view = service.resume(chosen(service, experiment))
        showing.show(form, view.data, showing.changed(view))


def finish(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """End an experiment for good, and say which arm won and how sure that is."""
    with speaking(form), opened(store) as service:
        view = service.finish(chosen(service, experiment))
        showing.show(form, view.data, showing.changed(view))


def away(arm: Away, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Say that an arm cannot be played for now. The guarantee is void from then on."""
    with speaking(form):
        experiment, (name,) = words.split_reference(arm, "ARM")
        with opened(store) as service:
            view = service.away(chosen(service, experiment), name)
        showing.show(form, view.data, [f"{name} is away; until it is back, another arm is played in its place."])


def back(arm: Away, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Say that an arm can be played again."""
    with speaking(form):
        experiment, (name,) = words.split_reference(arm, "ARM")
        with opened(store) as service:
            view = service.back(chosen(service, experiment), name)
        showing.show(form, view.data, [f"{name} is back."])


def plan(
    arms: Annotated[int, typer.Option(help="How many arms.")] = 2,
    window: Window = None,
    half_life: HalfLife = None,
    max_delay: MaxDelay = None,
    round_length: RoundLength = None,
    units: Annotated[int, typer.Option(help="How many units play in parallel.")] = 1,
    horizon: Horizon = None,
    direction: Direction = "maximize",
    player: Player = "default",
    form: Form = Format.TABLE,
) -> None:
    """Say what a carry-over leads to, before anything starts: blocks, decisions a quarter, the guarantee."""
    with speaking(form):
        carried = words.carry_over(window, half_life, max_delay, round_length)
        asked = {"n_arms": arms, "units": units, "horizon": horizon, "direction": direction, "player": player}
        found = planned({**asked, **carried})
        showing.show(form, found, [str(line) for line in found.get("sentences", [])])
