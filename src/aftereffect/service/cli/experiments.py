"""The commands on experiments: plan, init, ask, tell, amend, status, start, pause, resume, finish, away, back."""

from typing import Annotated, Any

import typer

from aftereffect.core.errors import InvalidArgument
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import DEFAULT_STORE, Experiment, Form, Store, chosen, opened
from aftereffect.service.cli.output import Format, exit_on_error, show

LENGTHS = (*args.LENGTHS, "round_length")


@args.with_settings(*LENGTHS, "units", "horizon", "direction", "player", "gap", "noise", "high")
def plan(
    settings: args.Settings,
    arms: Annotated[int, typer.Option(help="The number of arms.")] = 2,
    form: Form = Format.TABLE,
) -> None:
    """Simulate your settings: whether an experiment is worth while or an A/B test is better. Nothing is stored."""
    with exit_on_error(form):
        from aftereffect.service.experiment.plan import planned

        found = planned({"n_arms": arms, **settings})
        show(form, found.data, output.plan(found))


@args.with_settings(
    *("high", "low", "out_of_range", *LENGTHS, "max_lag", "units", "horizon", "direction", "player"),
    *("seed", "start_date", "measure"),
)
def init(
    name: Annotated[str, typer.Argument(help="The name of the experiment.")],
    arm: Annotated[list[str], typer.Option("--arm", help="An arm's name; give two or more.")],
    settings: args.Settings,
    draft: Annotated[bool, typer.Option("--draft", help="Do not start it yet.")] = False,
    warm_start: Annotated[
        str | None, typer.Option(help="Begin with what this experiment has measured; its id or name.")
    ] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Create an experiment: its arms and, for a guarantee, how long effects last and their range.

    If you know neither, omit them: a model learns from all totals, without a guarantee.
    """
    settings |= {"name": name, "arms": arm, "draft": draft}
    with exit_on_error(form):
        from aftereffect.service.settings import checked_settings

        # Validate before a store is created.
        checked_settings(settings | ({} if warm_start is None else {"warm_start": {"experiment": warm_start}}))
    with opened(store, form, create=warm_start is None) as service:
        if warm_start is not None:
            settings["warm_start"] = {"experiment": chosen(service, warm_start)}
        made = service.create(**settings)
        show(form, made.data, output.created(made))


@args.with_settings("low", "high", *LENGTHS, "horizon", "direction", "out_of_range", "measure")
def correct(
    settings: args.Settings,
    experiment: Experiment = None,
    name: Annotated[str | None, typer.Option(help='The new name; by default the old one and "(corrected)".')] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Correct settings that turned out wrong: a new experiment that inherits the rounds. The old one is finished.

    The learner hears the inherited totals where it would have played the same arm. The guarantee is void.
    """
    settings |= {} if name is None else {"name": name}
    with exit_on_error(form):
        if not settings:
            raise InvalidArgument("a setting to correct must be given, such as --high, but none is")
    with opened(store, form) as service:
        made = service.correct(chosen(service, experiment), **settings)
        show(form, made.data, output.created(made))


@args.with_settings(*args.LENGTHS, "low", "high", "player")
def continue_(
    settings: args.Settings,
    experiment: Experiment = None,
    add: Annotated[list[str] | None, typer.Option(help="The name of an arm to add; may be repeated.")] = None,
    retire: Annotated[list[str] | None, typer.Option(help="The name of an arm to retire; may be repeated.")] = None,
    name: Annotated[str | None, typer.Option(help='The new name; by default the old one and "(continued)".')] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Go on with arms added or retired, or with a guarantee: a new experiment that begins with what this one has shown.

    This one ends. For a guarantee, say how long effects last, as the rounds have shown it, and --high. The guarantee
    includes what the beginning costs if it is wrong.
    """
    settings |= {} if name is None else {"name": name}
    with opened(store, form) as service:
        made = service.continue_with(chosen(service, experiment), add or [], retire or [], **settings)
        show(form, made.data, output.created(made))


def ask(
    experiment: Experiment = None, unit: args.Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE
) -> None:
    """Show the arm to play now. Until the round is reported, asking again gives the same answer."""
    with opened(store, form) as service:
        turn = service.ask(chosen(service, experiment), unit)
        show(form, turn.data, output.turn(turn, experiment, unit))


def tell(
    reported: args.Reported,
    unit: args.Unit = None,
    next_round: args.Next = False,
    ahead: args.Ahead = False,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Report the total of a round, or that it is missing. Repeating the same report has no effect."""
    with exit_on_error(form):
        experiment, number, total = args.report(reported)
    with opened(store, form) as service:
        found = service.tell(chosen(service, experiment), number, total, unit, ahead=ahead, next=next_round)
        show(form, found.data, output.report(found, experiment, unit))


def upload(
    words: Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] FILE", help="A CSV file; - is standard input.")],
    first: Annotated[int | None, typer.Option(help="The round of the first total, if rounds are not named.")] = None,
    next_round: args.Next = False,
    ahead: args.Ahead = False,
    restate: args.Restate = False,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Report several rounds from a CSV file, all or none. The same file again changes nothing.

    Columns: total, and round or date, unit, arm where needed; without names, one total per line, from the round
    --first on. A round that is not open yet is opened; its arm must be given unless it plays that of the latest round.
    """
    with exit_on_error(form):
        experiment, (name,) = args.split(words, "FILE")
        text = args.text_of(name)
    with opened(store, form) as service:
        given: dict[str, Any] = {"ahead": ahead, "next": next_round, "restate": restate, "first": first}
        found = service.tell_many(chosen(service, experiment), csv=text, **given)
        show(form, found.data, output.reports(found, experiment))


def amend(
    reported: args.Reported, unit: args.Unit = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE
) -> None:
    """Correct a total, or report a late one; after the end of its block, what was learned is corrected too."""
    with exit_on_error(form):
        experiment, number, total = args.report(reported)
    with opened(store, form) as service:
        found = service.amend(chosen(service, experiment), number, total, unit)
        show(form, found.data, output.report(found, experiment, unit))


def note(
    words: Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] ROUND NOTE", help="An empty note removes it.")],
    unit: args.Unit = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Write a note on a round, such as "holiday"; on that of every unit, unless one is named."""
    with exit_on_error(form):
        experiment, (number, text) = args.split(words, "ROUND NOTE")
        round_ = args.round_number(number)
    with opened(store, form) as service:
        known = service.experiment(chosen(service, experiment))
        units = known.units if unit is None else [unit]
        rows = [service.note(known.id, round_, text.strip() or None, each) for each in units]
        show(form, rows[0].data, [f"Round {round_}: {rows[0].note or 'the note is removed'}"])


def remind(
    experiment: Experiment = None,
    to: Annotated[str | None, typer.Option(help="The name of a webhook in the server's configuration.")] = None,
    after: Annotated[str, typer.Option(help='How long after the end of a round: "12 hours".')] = "12 hours",
    before: Annotated[
        str | None, typer.Option(help="Instead: in every round, so long before its end, with what to play.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the reminder.")] = False,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Have the server call a webhook when a round waits for its report; without --to, show the reminder."""
    early = None if before is None else args.duration(before)
    with opened(store, form) as service:
        one = chosen(service, experiment)
        found = service.remind(one, to, args.duration(after), before=early) if to or off else service.reminder(one)
        show(form, found.data, output.reminder(found))


def status(
    experiments: Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Ids or names.")] = None,
    search: Annotated[str | None, typer.Option(help="List only experiments whose names contain this.")] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Show an experiment; without a name, the only one in the store, or the list of all. Compare several."""
    with opened(store, form) as service:
        if experiments and len(experiments) > 1:
            compared = service.compare([chosen(service, each) for each in experiments])
            show(form, {"items": [one.data for one in compared]}, output.comparison(compared))
            return
        experiment = experiments[0] if experiments else None
        if experiment is None:
            found = list(service.all_experiments(search))
            if len(found) != 1 or search is not None:
                show(form, {"items": [one.data for one in found], "next": None}, output.experiments(found))
                return
            experiment = found[0].id
        view = service.experiment(chosen(service, experiment))
        known = service.learned(view.id)
        show(form, view.data | {"learned": known.data}, output.status(view, known))


def start(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Start a draft."""
    _change("start", experiment, store, form)


def pause(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Pause: no round opens until you resume."""
    _change("pause", experiment, store, form)


def resume(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Resume after a pause.

    Effects fade during a pause, so the first d totals lack the effects of earlier rounds: these d rounds are a warm-up,
    recorded but not learned from.
    """
    _change("resume", experiment, store, form)


def finish(experiment: Experiment = None, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """End an experiment permanently, and show which arm won and how certain that is."""
    _change("finish", experiment, store, form)


def _change(verb: str, experiment: str | None, store: str, form: Format) -> None:
    with opened(store, form) as service:
        view = service.change(chosen(service, experiment), verb)
        known = service.learned(view.id) if verb == "finish" else None
        show(form, view.data, output.changed(view, known))


def away(arm: args.Arm, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Mark an arm as unavailable. The guarantee is void from then on."""
    _change_arm("away", arm, store, form, "{} is away; until it is back, other arms are played instead.")


def back(arm: args.Arm, store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """Mark an arm as available again."""
    _change_arm("back", arm, store, form, "{} is back.")


def _change_arm(verb: str, words: list[str], store: str, form: Format, said: str) -> None:
    with exit_on_error(form):
        experiment, (arm,) = args.split(words, "ARM")
    with opened(store, form) as service:
        view = service.change(chosen(service, experiment), verb, arm)
        show(form, view.data, [said.format(arm)])
