"""The commands on experiments, from `plan` and `init` to `finish` and `continue`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.service import fields
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import DEFAULT_STORE, Experiment, Store, chosen
from aftereffect.service.cli.output import Answer
from aftereffect.service.fields import READ
from aftereffect.service.settings import CarryOver, PlanQuestion

if TYPE_CHECKING:
    from aftereffect.service.protocol import Service

SETTINGS = tuple(name for name in READ if name not in ("name", "arms"))
PLANNED = tuple(name for name in SETTINGS if name in (*PlanQuestion.model_fields, *CarryOver.model_fields))
CREATED = tuple(name for name in SETTINGS if name not in ("gap", "noise"))
CHANGED = ("name", *CREATED)


def plan(
    settings: Annotated[args.Settings, PLANNED],
    arms: Annotated[int, typer.Option(help="The number of arms.")] = 2,
) -> Answer:
    """Simulate your settings: whether an experiment is worth while or an A/B test is better. Nothing is stored."""
    from aftereffect.service.experiment.plan import planned

    found = planned({"arms": arms, **settings})
    return Answer(found.data, output.plan(found))


def init(
    name: Annotated[str, typer.Argument(help="The name of the experiment.")],
    arm: Annotated[list[str], typer.Option("--arm", help="An arm's name; give two or more.")],
    settings: Annotated[args.Settings, CREATED],
    draft: Annotated[bool, typer.Option("--draft", help="Do not start it yet.")] = False,
    warm_start: Annotated[
        str | None, typer.Option(help="Begin with what this experiment has measured; its id or name.")
    ] = None,
    store: Store = DEFAULT_STORE,
) -> Answer:
    """Create an experiment: its arms and, for a guarantee, how long effects last and their range.

    If you know neither, omit them: a model learns from all totals, without a guarantee.
    """
    from aftereffect.service.settings import checked_settings

    settings |= {"name": name, "arms": arm, "draft": draft}
    # Validate before a store is created.
    checked_settings(settings | ({} if warm_start is None else {"warm_start": {"experiment": warm_start}}))
    from aftereffect.service.local import open_service

    with open_service(store, create=warm_start is None) as service:
        if warm_start is not None:
            settings["warm_start"] = {"experiment": chosen(service, warm_start)}
        made = service.create(**settings)
        return Answer(made.data, output.created(made))


def correct(service: "Service", settings: Annotated[args.Settings, CHANGED], experiment: Experiment = None) -> Answer:
    """Correct settings that turned out wrong: a new experiment that inherits the rounds. The old one is finished.

    The learner hears the inherited totals where it would have played the same arm. The guarantee is void. The name is
    by default the old one and "(corrected)".
    """
    made = service.correct(chosen(service, experiment), **settings)
    return Answer(made.data, output.created(made))


def continue_(
    service: "Service",
    settings: Annotated[args.Settings, CHANGED],
    experiment: Experiment = None,
    add: Annotated[list[str] | None, typer.Option(help="The name of an arm to add; may be repeated.")] = None,
    retire: Annotated[list[str] | None, typer.Option(help="The name of an arm to retire; may be repeated.")] = None,
) -> Answer:
    """Go on with arms added or retired, or with a guarantee: a new experiment that begins with what this one has shown.

    This one ends. For a guarantee, say how long effects last, as the rounds have shown it, and --high. The guarantee
    includes what the beginning costs if it is wrong. The name is by default the old one and "(continued)".
    """
    made = service.continue_with(chosen(service, experiment), add or [], retire or [], **settings)
    return Answer(made.data, output.created(made))


def ask(service: "Service", experiment: Experiment = None, unit: args.Unit = None) -> Answer:
    """Show the arm to play now. Until the round is reported, asking again gives the same answer."""
    turn = service.ask(chosen(service, experiment), unit)
    return Answer(turn.data, output.turn(turn, experiment, unit))


def tell(
    service: "Service",
    reported: args.Reported,
    unit: args.Unit = None,
    next_round: args.Next = False,
    ahead: args.Ahead = False,
) -> Answer:
    """Report the total of a round, or that it is missing. Repeating the same report has no effect."""
    experiment, number, total = args.report(reported)
    found = service.tell(chosen(service, experiment), number, total, unit, ahead=ahead, next=next_round)
    return Answer(found.data, output.report(found, experiment, unit))


def upload(
    service: "Service",
    words: Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] FILE", help="A CSV file; - is standard input.")],
    first: Annotated[int | None, typer.Option(help="The round of the first total, if rounds are not named.")] = None,
    next_round: args.Next = False,
    ahead: args.Ahead = False,
    restate: args.Restate = False,
) -> Answer:
    """Report several rounds from a CSV file, all or none. The same file again changes nothing.

    Columns: total, and round or date, unit, arm where needed; without names, one total per line, from the round
    --first on. A round that is not open yet is opened; its arm must be given unless it plays that of the latest round.
    """
    experiment, (name,) = args.split(words, "FILE")
    given: dict[str, Any] = {"ahead": ahead, "next": next_round, "restate": restate, "first": first}
    found = service.tell_many(chosen(service, experiment), csv=args.text_of(name), **given)
    return Answer(found.data, output.reports(found, experiment))


def amend(service: "Service", reported: args.Reported, unit: args.Unit = None) -> Answer:
    """Correct a total, or report a late one; after the end of its block, what was learned is corrected too."""
    experiment, number, total = args.report(reported)
    found = service.amend(chosen(service, experiment), number, total, unit)
    return Answer(found.data, output.report(found, experiment, unit))


def note(
    service: "Service",
    words: Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] ROUND NOTE", help="An empty note removes it.")],
    unit: args.Unit = None,
) -> Answer:
    """Write a note on a round, such as "holiday"; on that of every unit, unless one is named."""
    experiment, (number, text) = args.split(words, "ROUND NOTE")
    round_ = args.round_number(number)
    known = service.experiment(chosen(service, experiment))
    units = known.units if unit is None else [unit]
    rows = [service.note(known.id, round_, text.strip() or None, each) for each in units]
    return Answer(rows[0].data, [f"Round {round_}: {rows[0].note or 'the note is removed'}"])


def remind(
    service: "Service",
    experiment: Experiment = None,
    to: Annotated[str | None, typer.Option(help="The name of a webhook in the server's configuration.")] = None,
    after: Annotated[str, typer.Option(help='How long after the end of a round: "12 hours".')] = "12 hours",
    before: Annotated[
        str | None, typer.Option(help="Instead: in every round, so long before its end, with what to play.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the reminder.")] = False,
) -> Answer:
    """Have the server call a webhook when a round waits for its report; without --to, show the reminder."""
    one = chosen(service, experiment)
    found = service.reminder(one)
    if to or off:
        early = None if before is None else fields.duration("before", before)
        found = service.remind(one, to, fields.duration("after", after), before=early)
    return Answer(found.data, output.reminder(found))


def status(
    service: "Service",
    experiments: Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Ids or names.")] = None,
    search: Annotated[str | None, typer.Option(help="List only experiments whose names contain this.")] = None,
) -> Answer:
    """Show an experiment; without a name, the only one in the store, or the list of all. Compare several."""
    if experiments and len(experiments) > 1:
        compared = service.compare([chosen(service, each) for each in experiments])
        return Answer({"items": [one.data for one in compared]}, output.comparison(compared))
    if not experiments:
        found = list(service.all_experiments(search))
        if len(found) != 1 or search is not None:
            return Answer({"items": [one.data for one in found], "next": None}, output.experiments(found))
        experiments = [found[0].id]
    view = service.experiment(chosen(service, experiments[0]))
    known = service.learned(view.id)
    return Answer(view.data | {"learned": known.data}, output.status(view, known))


def start(service: "Service", experiment: Experiment = None) -> Answer:
    """Start a draft."""
    return _changed(service, experiment, "start")


def pause(service: "Service", experiment: Experiment = None) -> Answer:
    """Pause: no round opens until you resume."""
    return _changed(service, experiment, "pause")


def resume(service: "Service", experiment: Experiment = None) -> Answer:
    """Resume after a pause.

    Effects fade during a pause, so the first d totals lack the effects of earlier rounds: these d rounds are a warm-up,
    from which only a model learns.
    """
    return _changed(service, experiment, "resume")


def finish(service: "Service", experiment: Experiment = None) -> Answer:
    """End an experiment permanently, and show which arm won and how certain that is."""
    return _changed(service, experiment, "finish")


def _changed(service: "Service", experiment: str | None, verb: str) -> Answer:
    view = service.change(chosen(service, experiment), verb)
    known = service.learned(view.id) if verb == "finish" else None
    return Answer(view.data, output.changed(view, known))


def away(service: "Service", arm: args.Arm) -> Answer:
    """Mark an arm as unavailable. The guarantee is void from then on."""
    return _changed_arm(service, arm, "away", "is away; until it is back, other arms are played instead.")


def back(service: "Service", arm: args.Arm) -> Answer:
    """Mark an arm as available again."""
    return _changed_arm(service, arm, "back", "is back.")


def _changed_arm(service: "Service", words: list[str], verb: str, said: str) -> Answer:
    experiment, (arm,) = args.split(words, "ARM")
    view = service.change(chosen(service, experiment), verb, arm)
    return Answer(view.data, [f"{arm} {said}"])
