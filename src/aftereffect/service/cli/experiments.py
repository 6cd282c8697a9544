"""The commands on experiments: plan, init, ask, tell, amend, status, start, pause, resume, finish, away, back."""

from typing import Annotated

import typer

from aftereffect.service.cli import arguments, output
from aftereffect.service.cli.arguments import (
    Away,
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
from aftereffect.service.cli.output import Format, speaking
from aftereffect.service.experiment.plan import planned
from aftereffect.service.local import DEFAULT_STORE, chosen, everything, opened
from aftereffect.service.settings import checked_settings


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
        carried = arguments.carry_over(window, half_life, max_delay, round_length)
        settings = arguments.settings(carried, units, {**plain, **optional})
        # Before a store is made for it.
        checked_settings(settings)
        with opened(store, create=True) as service:
            made = service.create(**settings)
        output.show(form, made.data, output.made(made))


def ask(
    experiment: Experiment = None, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE
) -> None:
    """Say what to play now. Ask as often as you like: until the round is told, the answer stays the same."""
    with speaking(form), opened(store) as service:
        turn = service.ask(chosen(service, experiment), unit)
        output.show(form, turn.data, output.turn(turn, experiment, unit))


def tell(reported: Reported, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Report the total of a round, or that it is missing. The same report again is accepted again."""
    with speaking(form):
        experiment, number, total = arguments.report(reported)
        with opened(store) as service:
            found = service.tell(chosen(service, experiment), number, total, unit)
        output.show(form, found.data, output.report(found, experiment, unit))


def amend(reported: Reported, unit: Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Correct a total, or bring a late one, while the block of its round is open."""
    with speaking(form):
        experiment, number, total = arguments.report(reported)
        with opened(store) as service:
            found = service.amend(chosen(service, experiment), number, total, unit)
        output.show(form, found.data, output.report(found, experiment, unit))


def status(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Show an experiment; without a name, the only one there is, or the list of all."""
    with speaking(form), opened(store) as service:
        if experiment is None:
            found = list(everything(service))
            if len(found) != 1:
                every = {"items": [dict(one.data) for one in found], "next": None}
                output.show(form, every, output.listed(found))
                return
            experiment = found[0].id
        view = service.experiment(chosen(service, experiment))
        output.show(form, view.data, output.status(view))


def start(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Start a draft."""
    with speaking(form), opened(store) as service:
        view = service.start(chosen(service, experiment))
        output.show(form, view.data, output.changed(view))


def pause(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Pause: no round opens until you resume."""
    with speaking(form), opened(store) as service:
        view = service.pause(chosen(service, experiment))
        output.show(form, view.data, output.changed(view))


def resume(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Go on after a pause.

    Effects fade while you pause, so the first d totals lack what earlier rounds would have added: they are a warm-up,
    recorded and not learned from.
    """
    with speaking(form), opened(store) as service:
        view = service.resume(chosen(service, experiment))
        output.show(form, view.data, output.changed(view))


def finish(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """End an experiment for good, and say which arm won and how sure that is."""
    with speaking(form), opened(store) as service:
        view = service.finish(chosen(service, experiment))
        output.show(form, view.data, output.changed(view))


def away(arm: Away, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Say that an arm cannot be played for now. The guarantee is void from then on."""
    with speaking(form):
        experiment, (name,) = arguments.split_reference(arm, "ARM")
        with opened(store) as service:
            view = service.away(chosen(service, experiment), name)
        output.show(form, view.data, [f"{name} is away; until it is back, another arm is played in its place."])


def back(arm: Away, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Say that an arm can be played again."""
    with speaking(form):
        experiment, (name,) = arguments.split_reference(arm, "ARM")
        with opened(store) as service:
            view = service.back(chosen(service, experiment), name)
        output.show(form, view.data, [f"{name} is back."])


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
        carried = arguments.carry_over(window, half_life, max_delay, round_length)
        asked = {"n_arms": arms, "units": units, "horizon": horizon, "direction": direction, "player": player}
        found = planned({**asked, **carried})
        output.show(form, found, [str(line) for line in found.get("sentences", [])])
