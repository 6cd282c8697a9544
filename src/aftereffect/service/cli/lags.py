"""The commands on how long effects last: pilot, carryover, accept."""

import warnings
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.text import amount
from aftereffect.service import totals
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import DEFAULT_STORE, Experiment, Form, Store, chosen, opened
from aftereffect.service.cli.output import Format, exit_on_error, show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TOTALS = 100_000


def pilot(
    max_lag: Annotated[str, typer.Option(help='The longest lag to measure: a number of rounds, or "2 weeks".')],
    arms: Annotated[int, typer.Option(help="The number of arms.")] = 2,
    rounds: Annotated[int | None, typer.Option(help="By default twelve totals for each arm and lag.")] = None,
    units: Annotated[int, typer.Option(help="The number of units that play in parallel.")] = 1,
    round_length: args.RoundLength = None,
    noise: args.Noise = None,
    seed: Annotated[int, typer.Option(help="The random seed of the schedule.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the schedule to this CSV file.")] = None,
    form: Form = Format.TABLE,
) -> None:
    """Plan a pilot: how long it takes, how wide its bands will be, and its random schedule. Nothing is stored.

    `aftereffect init --pilot` creates an experiment that begins with a pilot and plays it for you.
    """
    with exit_on_error(form):
        from aftereffect.service.errors import checked
        from aftereffect.service.settings import PlanQuestion
        from aftereffect.service.settings import duration as in_words

        asked = args.carry_over(round_length=round_length, pilot=max_lag, pilot_rounds=rounds)
        design = checked(PlanQuestion, {"n_arms": arms, "units": units, **asked}, "a pilot")
        if design.pilot is None:
            raise RuntimeError("no pilot was asked for")
        n, D = design.pilot.rounds, design.pilot.max_lag
        planned = design.pilot.schedule(arms, units, seed)
        found: dict[str, Any] = {"rounds": n, "max_lag": D, "effect": None, "whole": None}
        lines = [
            f"A pilot of {n:,} rounds ({in_words(n * design.round_length)}) measures the effects of {arms} arms up to "
            f"lag {D}.",
            "On average its outcome is that of an equal split between the arms.",
        ]
        if noise is None:
            lines.append("Give a guess of the noise with --noise to see how wide the bands will be.")
        else:
            width = planned.expected_width(noise=noise)
            found |= {"effect": width.effect, "whole": width.whole}
            lines.append(
                f"With noise of {amount(noise)}, the effect at a lag will be known to ±{width.effect:.3g}, the whole "
                f"effect of an arm to ±{width.whole:.3g} (95% bands)."
            )
        if out is not None:
            rows = [f"{t + 1},{u + 1},{arm + 1}" for t, row in enumerate(planned.arms) for u, arm in enumerate(row)]
            out.write_text("\n".join(["round,unit,arm", *rows, ""]), encoding="utf-8")
            lines.append(f"The schedule is in {out}.")
        show(form, found, lines)


def carryover(
    subject: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT | HISTORY.csv]", help="An id or name, or a file; - is stdin.")
    ] = None,
    max_lag: Annotated[str | None, typer.Option(help="For a file: the longest lag, in rounds.")] = None,
    randomised: Annotated[bool, typer.Option("--randomised", help="For a file: arms were chosen at random.")] = False,
    direction: Annotated[str, typer.Option(help="For a file: maximize or minimize.")] = "maximize",
    low: Annotated[float, typer.Option(help="For a file: the smallest effect of one action.")] = 0.0,
    high: Annotated[float | None, typer.Option(help="For a file: the largest effect of one action.")] = None,
    horizon: args.Horizon = None,
    plot: Annotated[Path | None, typer.Option(help="For a file: draw the curves into this picture.")] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Estimate how long effects last: from an experiment's rounds, or from a file with the columns arm and total.

    Further columns of a file: unit, and round or date. Without both, each line is the next round of its unit.
    """
    if subject is not None and (subject == "-" or subject.endswith(".csv") or Path(subject).is_file()):
        with exit_on_error(form):
            if max_lag is None or not (max_lag.isascii() and max_lag.isdigit()):
                got = "it is missing" if max_lag is None else f"got {max_lag!r}"
                raise InvalidArgument(f"--max-lag must be a whole number of rounds, such as 10, for a file, but {got}")
            found = _from_history(args.text_of(subject), int(max_lag), randomised, direction, low, high, horizon, plot)
            show(form, found, output.carryover(found))
        return
    with exit_on_error(form):
        given = {"--max-lag": max_lag, "--high": high, "--horizon": horizon, "--plot": plot}
        if wrong := [name for name, value in given.items() if value is not None]:
            rule = "must be omitted unless a file is given, because an experiment has its own settings and its page"
            raise InvalidArgument(f"{wrong[0]} {rule}, but got {given[wrong[0]]}")
    with opened(store, form) as service:
        found = service.carryover(chosen(service, subject)).data
        show(form, found, output.carryover(found))


def _from_history(
    text: str,
    max_lag: int,
    randomised: bool,
    direction: str,
    low: float,
    high: float | None,
    horizon: int | None,
    plot: Path | None,
) -> dict[str, Any]:
    """Return the findings from the text of a CSV file, as those of an experiment."""
    from aftereffect.carryover import estimate
    from aftereffect.service import lag_estimates, words

    names, played, told = _history(text)
    lag_estimates.check_size(len(names), max_lag, *played.shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AftereffectWarning)
        exposure = "randomised" if randomised else "recorded"
        found = estimate(played, told, max_lag=max_lag, n_arms=len(names), exposure=exposure)
    if plot is not None:
        figure, axes = checks.optional("matplotlib.pyplot", "--plot", "plots").subplots(layout="constrained")
        found.plot(axes, names)
        figure.savefig(plot)
    attention = [f"Attention: {each.message}; --randomised if they were." for each in caught]
    described = lag_estimates.described(found, names, horizon, direction, low, high)
    lines = [*attention, *described["sentences"]]
    if high is None:
        lines.append("To propose a carry-over, the range of one action's effect is needed: give --low and --high.")
    elif lag_estimates.impossible_level(found, low, high):
        lines.append(f"Attention: {words.level(found.base, low, high)}.")
    return {"reason": None, "source": "history", "max_lag": max_lag, **described, "sentences": lines}


def _history(text: str) -> tuple[list[str], "NDArray[np.int64]", "NDArray[np.float64]"]:
    """Return the names of the arms, and arms and totals of shape (rounds, units); -1 and NaN where there is no line."""
    import numpy as np

    items = list(totals.items(text, MOST_TOTALS))
    if any(item.arm is None for item in items):
        raise InvalidArgument("the file must have a column arm with a name in every line, but has not")
    names = sorted({str(item.arm) for item in items})
    units = list(dict.fromkeys(item.unit for item in items))
    if all(item.round is not None for item in items):
        rounds = [item.round or 0 for item in items]
    elif all(item.date is not None for item in items):
        days = np.array([date.fromisoformat(item.date or "").toordinal() for item in items])
        # Days without a line, in which nothing is known, make no difference to the greatest common divisor.
        rounds = ((days - days.min()) // max(int(np.gcd.reduce(days - days.min())), 1)).tolist()
    else:
        seen = dict.fromkeys(units, 0)
        rounds = []
        for item in items:
            seen[item.unit] += 1
            rounds.append(seen[item.unit])
    first, places = min(rounds), {name: i for i, name in enumerate(names)}
    length = max(rounds) - first + 1
    if length > MOST_TOTALS:
        raise InvalidArgument(f"the rounds of the file must be within {MOST_TOTALS:,}, but they are {length:,} apart")
    arms, told = np.full((length, len(units)), -1), np.full((length, len(units)), np.nan)
    for t, item in zip(rounds, items, strict=True):
        place = t - first, units.index(item.unit)
        if arms[place] >= 0:
            raise InvalidArgument(f"the file must have each round of a unit once, but has round {t} twice")
        arms[place], told[place] = places[str(item.arm)], np.nan if item.total is None else item.total
    return names, arms, told


def accept(
    experiment: Experiment = None,
    max_delay: Annotated[int | None, typer.Option(help="In rounds; by default the one that is proposed.")] = None,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """End the pilot of an experiment and play on with this carry-over; the learner begins with what was measured."""
    with opened(store, form) as service:
        view = service.accept(chosen(service, experiment), max_delay)
        show(form, view.data, output.accepted(view))
