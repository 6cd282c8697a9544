"""Every sentence about an experiment that the page, the command line and the API show.

What is stored are facts; the words for them are rendered here, when they are shown. So a sentence can be reworded
without a change to any store. Refusals state their rule where it is checked.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from aftereffect.core.text import amount, counted
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.service.messages import Due, Fields, Learned, Overview, Turn
from aftereffect.service.settings import Design, ExperimentSettings, duration

if TYPE_CHECKING:
    from aftereffect.service.experiment.learner import Rhythm
    from aftereffect.service.experiment.state import State


def why(row: Fields, settings: Design) -> str:
    """Return why a round plays its arm, and how its total is used. row: as stored. settings: with the max_delay of now.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> row = {"arm": "A", "drawn": "B", "round": 9, "block": 2, "block_start": 8, "withheld": False}
    >>> why({**row, "reason": "substitute"}, PlanQuestion(arms=2, max_delay=3))
    'B is away, so A is played in its place; the model learns what A brings, and B is credited with it.'
    """
    arm, place, d = row["arm"], row["round"] - row["block_start"] + 1, settings.max_delay
    here = f"round {place} of block {row['block']}"
    if row["reason"] not in ("learner", "opening"):
        return _exception(row, settings, here)
    if settings.player == "model" or row["reason"] == "opening":
        return f"{arm} is played: the model tries the arms that may be the best, the likeliest most often."
    drawn = f"{arm} was drawn with probability {row['probability']:.3f}"
    if d == 0:
        return f"{drawn}; effects do not linger, so every round counts."
    # An update needs d zeros before its coin; for the player "paper" it needs 2d.
    shortest = (1 if settings.player != "paper" else 2) * d + 1
    if place == 1:
        return f"{drawn} for block {row['block']} and stays for at least {shortest} rounds."
    if place <= d and not settings.advised:
        return f"{arm} stays: wash-in, {here}; earlier effects still arrive, so this total is not measured."
    ends = "may end any round now" if place >= shortest else f"lasts at least {shortest} rounds"
    return f"{arm} stays: {here}, which {ends}."


def _exception(row: Fields, settings: Design, here: str) -> str:
    """Return why a round does not play what the learner has drawn for its block, or how its total is used otherwise."""
    arm = row["arm"]
    only = "only the model learns from this total" if settings.advised else "this total is not learned from"
    match row["reason"]:
        case "inherited":
            used = only if row["withheld"] else "this total is learned from like any other"
            return f"{arm} was played in the experiment whose rounds this one inherits; {used}."
        case "substitute":
            then = f"{row['drawn']} is credited with what {arm} brings"
            if settings.player == "model" or row["block"] == 0:
                then = f"the model learns what {arm} brings"
            elif row["withheld"]:
                then = f"earlier effects still arrive, so {only}"
            elif settings.advised:
                then = f"the model learns what {arm} brings, and {row['drawn']} is credited with it"
            return f"{row['drawn']} is away, so {arm} is played in its place; {then}."
        case "warm_up":
            return f"{arm}, {here}: warm-up after a pause, so {only}."
    return f"{arm}, {here}: effects of a substitute still arrive, so {only}."


def possible(settings: Design) -> str:
    """Return the range of a total.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> possible(PlanQuestion(arms=2, high=50, max_delay=2))
    '[0, 150], the range of a total with these settings'
    """
    low, high = settings.limits
    return f"[{amount(low)}, {amount(high)}], the range of a total with these settings"


def out_of_range(row: Fields, settings: Design) -> str:
    """Return what is done with a total out of range."""
    then = (
        "it is recorded, but nothing is learned from it. If the total is right, low, high or max_delay is wrong: "
        "correct the settings. If it is a typing error, correct the total."
    )
    if row["status"] == "clipped":
        low, high = settings.limits
        then = f"it is recorded, and learned from as {amount(min(max(row['total'], low), high))}."
    return f"{amount(row['total'])} is outside {possible(settings)}: {then}"


MOST_SAID = 3
"""Of so many totals of several it is said what is special about them."""


def exact(value: float | None) -> str:
    """Return a reported number with all its digits.

    >>> exact(8421.0), exact(0.1), exact(-1234567.25), exact(1e22)
    ('8,421', '0.1', '-1,234,567.25', '1e+22')
    """
    return "" if value is None else f"{float(value):,}".removesuffix(".0")


def play(row: Fields, named: bool = False) -> str:
    """Return what to play in a round. named: with the unit."""
    when = f" ({row['date']})" if row["date"] else ""
    where = f" in {row['unit']}" if named else ""
    return f"Round {row['round']:,}{when}: play {row['arm']}{where}."


def recorded(rows: Sequence[Fields], named: bool = False) -> list[str]:
    """Return how reports were recorded. rows: as stored, with `warning` where a total is out of range, or as answered.

    named: with their units.
    """
    if len(rows) == 1:
        again = " This repeats an earlier report." if rows[0].get("repeated") else ""
        return [_recorded(rows[0], named) + again]
    first, last, again = rows[0]["round"], rows[-1]["round"], sum(row.get("repeated", False) for row in rows)
    rounds = f"round {first:,}" if first == last else f"rounds {first:,} to {last:,}"
    which = f"{counted(len(rows), 'report')} of {rounds} are recorded"
    lines = [f"{which}{f', {again} of them repeat earlier ones' if again else ''}."]
    special = [_recorded(row, named) for row in rows if row.get("warning") or row.get("correction")]
    lines += special[:MOST_SAID]
    if len(special) > MOST_SAID:
        lines.append(f"The same holds for {counted(len(special) - MOST_SAID, 'other total')}.")
    return lines


def _recorded(row: Fields, named: bool) -> str:
    taken = row.get("warning") or f"{exact(row['total'])} is recorded for {row['arm']}."
    if row["total"] is None:
        taken = "closed as missing; nothing is learned from it."
    late = f" {row['correction']}" if row.get("correction") else ""
    unit = f" ({row['unit']})" if named else ""
    return f"Round {row['round']:,}{unit}: {taken}{late}"


RECORD_ONLY = {
    "not_measured": "it had not been learned from",
    "substitute": "it was attributed to the arm that was away",
    "inherited": "it was learned from as a round of the experiment before",
}
"""Why a late correction is not learned from."""


def late_correction(unlearned: str | None, block_closed: bool, advised: bool) -> str:
    """Return what a correction after the end of its block did. unlearned: a key of RECORD_ONLY, or None."""
    if unlearned is not None and advised:
        return "The total is corrected, and the model learns from the corrected one."
    if unlearned is not None:
        return f"The total is corrected in the record only, because {RECORD_ONLY[unlearned]}."
    when = "at once" if block_closed else "when the open block ends"
    words = f"The total had been learned from; what was learned is corrected {when}, and the certificate says what "
    return f"{words}the late correction cost."


def plan(design: Design, found: "Rhythm", per_quarter: float) -> list[str]:
    """Return what settings imply before the start. per_quarter: decisions."""
    pace = [] if found.opening_lasts(design.horizon) else _pace(design, per_quarter)
    return [*_rhythm(design, found), *pace, *_promise(design, found)]


def _rhythm(design: Design, found: "Rhythm") -> list[str]:
    """Return sentences on the length of blocks and the reason for it."""
    d, r, shortest, mean = design.max_delay, design.round_length, found.shortest_block, found.mean_block
    lines = [
        f"Carry-over: effects arrive up to {counted(d, 'round')} ({duration(d * r)}) after the action. Other tools "
        "call this the attribution window, conversion window, max_lag, lookback or washout."
    ]
    if d == 0:
        lines = ["Carry-over: effects count in the round of the action only, so every round is a separate decision."]
    if design.late_share:
        part = f"{design.late_share:.1%} of an effect arrives later than that."
        lines.append(f"{part} The guarantee includes this part; with a longer carry-over it would be smaller.")
    if found.opening_lasts(design.horizon):
        return [*lines, "Up to the horizon a model of all totals chooses the arms itself, as it learns."]
    if found.opening:
        first = f"In the first {counted(found.opening, 'round')} ({duration(found.opening * r)})"
        lines.append(f"{first} a model of all totals chooses the arms itself, as it learns.")
    if d > 0:
        used = "The first totals of a block still hold effects of the previous arm; the last ones are learned from."
        if design.advised:
            used = "The model learns from every total; at the end of a block its advice is followed as far as the "
            used += "guarantee allows."
        stays = f"{'Then an' if found.opening else 'An'} arm stays for a block of at least {shortest} rounds"
        average = f"{mean:.1f} on average ({_length(mean * r)})"
        lines.append(f"{stays} ({duration(shortest * r)}), {average}. {used}")
    return lines


def _length(days: float) -> str:
    """Return a time with one decimal.

    >>> _length(0.25), _length(23.4), _length(400.0)
    ('6.0 hours', '23.4 days', '1.1 years')
    """
    for unit, length in (("years", 365.25), ("days", 1.0)):
        if days >= length:
            return f"{days / length:.1f} {unit}"
    return f"{24.0 * days:.1f} hours"


def _pace(design: Design, per_quarter: float) -> list[str]:
    """Return sentences on the number of decisions, with advice if it is low."""
    K, M = len(design.arms), len(design.units)
    where = f" in each of {M} units" if M > 1 else ""
    lines = [f"That makes about {amount(round(per_quarter, 1))} decisions per quarter{where}."]
    # Learning needs at least five trials of each arm in a year, without a model.
    if not design.advised and 4.0 * per_quarter * M < 5.0 * K:
        slow = f"This is slow: in a year each of the {K} arms is tried about {4 * per_quarter * M / K:.1f} times. "
        slow += "More units (regions, stores, segments) learn in parallel; fewer arms or a shorter carry-over help too."
        lines.append(slow)
    return lines


def _promise(design: Design, found: "Rhythm") -> list[str]:
    """Return sentences on when the guarantee is informative, and whether the horizon is long enough."""
    T = design.horizon
    if found.informative_from is None and design.low < 0.0 and design.player == "paper":
        return ["No guarantee is known for this player if effects can be negative."]
    silent = _silent(design, found.informative_from)
    lines = [f"The guarantee, which holds whatever the effects are, says nothing {silent}. Learning starts earlier."]
    if T is not None and found.mean_block > T and not design.advised:
        rounds = counted(T, "round")
        lines.append(f"The horizon of {rounds} is shorter than one mean block: very little can be learned.")
    return lines


def _silent(design: Design, since: int | None) -> str:
    """Return how long the guarantee says nothing. since: the round from which it is below the largest possible loss."""
    if since is None:
        return "with these settings: it is never below the largest possible loss"
    if design.horizon is not None and since > design.horizon:
        return f"over {counted(design.horizon, 'round')}: it takes {counted(since, 'round')} or more"
    return f"before round {since:,} ({_length(since * design.round_length)})"


class Waiting(NamedTuple):
    """What an experiment waits for, in words. rank: the less, the sooner it needs a person. at: when the round is over.

    late: how many rounds are over without a report. since: from which day on, in words; "" if none is late.
    """

    rank: int
    at: str
    words: str
    late: int = 0
    since: str = ""


def waiting(view: Overview, now: str) -> Waiting:
    """Return what an experiment waits for at this time."""
    if view.state == "finished":
        return Waiting(4, "", "nothing")
    if view.state == "draft":
        return Waiting(3, "", "its start")
    what = f"round {view.round + 1:,} to be opened"
    if view.open_round is not None:
        what = f"the total of round {view.open_round:,}"
    if view.state == "paused":
        return Waiting(3, "", "resume" if view.open_round is None else f"{what}, then resume")
    if view.due is None:
        return Waiting(2, "", what)
    at = view.due.at
    behind = datetime.fromisoformat(now) - datetime.fromisoformat(at)
    if behind < timedelta(0):
        when = f", due on {day(view.due.date, now)}" if view.due.date else ""
        return Waiting(1 if view.alarms else 2, at, f"{what}{when}")
    late, since = behind // timedelta(days=view.round_length) + 1, day(at, now)
    rest = f" ({late:,} rounds behind)" if late > 1 else ""
    return Waiting(0, at, f"{what}, due since {since}{rest}", late, since)


def reminder(view: Overview, due: Due, turn: Turn | None, now: str) -> str:
    """Return the message of a reminder: what to play, what is overdue, and alarms. turn: the open round."""
    round_ = f"round {due.round}" + (f" of {due.date}" if due.date else "")
    late = waiting(view, now).late
    if turn is None:
        parts = [f"{view.name}: {round_} has not been opened. Ask for its arm, and report its total."]
    else:
        played = ", ".join(f"{arm} in {unit}" for unit, arm in (turn.arms or {}).items()) or turn.arm
        waits = f"{round_} waits for its total. It plays {played}."
        parts = [f"{view.name}: {waits}" if late else f"{view.name}: play {played} in {round_}."]
    if late > 1 and due.date:
        parts.append(f"{late:,} rounds are overdue.")
    return " ".join([*parts, *(f"Attention: {alarm}" for alarm in view.alarms)])


def day(date: str, now: str) -> str:
    """Return a date in words, with the year if it is another one.

    >>> day("2026-11-06", "2026-12-01T08:00:00Z"), day("2025-11-06T00:00:00Z", "2026-12-01T08:00:00Z")
    ('6 November', '6 November 2025')
    """
    found = datetime.fromisoformat(date)
    return f"{found.day} {found:%B}" + ("" if date[:4] == now[:4] else f" {found.year}")


NOTHING_HEARD = "No unit has reported two totals yet."


def no_model(settings: Design) -> str:
    """Return that a record is too large for a model."""
    sizes = f"{counted(len(settings.arms), 'arm')} in {counted(len(settings.units), 'unit')}"
    return f"With {sizes} there is no model of more than {settings.model_rounds:,} rounds: nothing is said of effects."


def learned(found: Learned, settings: ExperimentSettings) -> list[str]:
    """Return what all totals say: which arm is best and how surely, how long effects last, what settling now costs."""
    if found.leader is None or found.difference is None:
        return ["Nothing can be compared yet: only one arm has been reported."]
    told = None if settings.player == "model" else settings.max_delay
    unit = f" {settings.measure}" if settings.measure else ""
    lines = known(found, settings.direction, told, settings.measure)
    if found.loss_per_day is not None:
        loss = "practically nothing" if negligible(found) else f"{amount(found.loss_per_day, digits=2)}{unit} a day"
        lines.append(f"To settle on {found.leader} now is expected to lose {loss} against the best arm.")
    if found.gain is not None:
        whole, least, most = found.gain
        better = f"{amount(abs(whole), digits=3)}{unit} {'better' if whole >= 0.0 else 'worse'} than an equal split"
        lines.append(f"So far {better} over the arms: between {amount(least, digits=3)} and {amount(most, digits=3)}.")
    return lines


def recommendation(found: Learned) -> str:
    """Return which arm to settle on."""
    if found.leader is None:
        return "No arm can be recommended."
    if found.sure in ("certain", "likely"):
        return f"Settle on {found.leader}."
    return f"It is open which arm is best; if you must choose, take {found.leader}."


def negligible(found: Learned) -> bool:
    """Return whether the loss of settling now is less than a thousandth of what an action of the leader brings more."""
    return not found.arms or (found.loss_per_day or 0.0) < 0.001 * abs(found.arms[0].effect[0])


def known(found: Learned, direction: str, max_delay: int | None, measure: str | None = None) -> list[str]:
    """Return what has been learned: which arm brings most, when its effect comes, and what speaks against that.

    max_delay: None if nobody has said how long effects last. measure: what a total counts.
    """
    first, brings = found.arms[0], "brings most" if direction == "maximize" else "costs least"
    effect, low, high = first.effect
    more = "more" if effect >= 0.0 else "less"
    by = f"{amount(abs(effect), digits=2)} ± {amount((high - low) / 2.0, digits=2)} {measure or ''}".rstrip()
    by += f" {more} than the mean of the arms"
    begin = {"certain": f"{first.arm} {brings}", "likely": f"{first.arm} probably {brings}"}
    sure = begin.get(found.sure, f"It is open which arm {brings}; {first.arm} leads")
    lines = [f"{sure} (probability {chance(first.best)}): {by}."]
    against = [each.sentence for each in found.findings if each.found and each.name in ("changed", "held")]
    if found.lasts is None:
        return [*lines, "These totals do not show when effects come.", *against]
    ahead = [value if effect >= 0.0 else -value for value, _, _ in first.by_lag]
    peak = ahead.index(max(ahead))
    when = "in the round of the action" if peak == 0 else f"{counted(peak, 'round')} after the action"
    last = f"Effects certainly last until {counted(found.lasts, 'round')} after the action"
    if found.lasts == 0:
        last = "No effect after the round of the action is certain"
    lines.append(f"The difference comes mostly {when}.")
    lines.append(f"{last}; the longest lag looked at is {counted(found.max_lag, 'round')}.")
    if max_delay is not None and found.lasts > max_delay:
        lines.append(f"That is longer than the carry-over of {counted(max_delay, 'round')}: correct the settings.")
    return [*lines, *against]


def probability(share: float) -> str:
    """Return a probability in percent; only exactly 1 is shown as 100%.

    >>> probability(0.375), probability(0.999), probability(1e-9)
    ('38%', '>99%', '<1%')
    """
    return "<1%" if 0.0 < share < 0.005 else ">99%" if 0.995 <= share < 1.0 else f"{share:.0%}"


def chance(best: float) -> str:
    """Return the probability that an arm is the best, in percent; it is estimated, and so never 0% or 100%.

    >>> chance(0.0), chance(0.843), chance(1.0)
    ('<1%', '84%', '>99%')
    """
    return probability(min(max(best, 1e-9), 1.0 - 1e-9))


def agreement(found: Learned, shares: Mapping[str, float], player: str) -> str | None:
    """Return why the learner does not play the leader most often; None if it does, or if the model is the learner."""
    likeliest = max(shares, key=lambda arm: shares[arm])
    if player == "model" or found.leader is None or shares[found.leader] >= 0.5:
        return None
    slow = "the learner goes only as far as its guarantee allows"
    if shares[likeliest] > 1.01 / len(shares) and likeliest != found.leader:
        return f"{likeliest} is drawn most often at present ({probability(shares[likeliest])}), because {slow}."
    return f"All arms are still tried, because {slow}."


def model_plan(design: Design) -> list[str]:
    """Return what the player "model" assumes and does."""
    return [
        "Every total counts. Nothing needs to be known of how long effects last, or of their range: a model learns "
        f"from all rounds, with effects up to {counted(design.longest_lag, 'round')} after an action.",
        "It assumes that the effects of actions add up, and that an arm has the same effect each time; it says what "
        "speaks against that. There is no guarantee: to go on with one, continue with the carry-over that the rounds "
        "have shown.",
    ]


def next_decision(state: "State", likely: int, earliest: int) -> str:
    """Return when the next decision falls."""
    around = f"around {_when(state, likely)}, at the earliest {_when(state, earliest)}"
    return f"The next decision falls {f'on {_when(state, likely)}' if likely == earliest else around}."


def _when(state: "State", number: int) -> str:
    date = state.date_ahead(number)
    return f"round {number:,}" if date is None else f"{date} (round {number:,})"


def alarms(state: "State") -> list[str]:
    """Return sentences on what needs attention, the most serious first; empty if nothing does."""
    settings, counts, found = state.settings, state.counts, list[str]()
    reports, told = counts["reports"], counts["reports"] + counts["missing"]
    outside, used = counts["void"], "are not learned from"
    if settings.out_of_range == "clip":
        outside, used = counts["out_of_range"], "count as the nearest possible one"
    # With one report in a hundred out of range, the range is probably wrong.
    if outside > 0.01 * reports:
        share = f"{outside:,} of {counted(reports, 'total')} ({outside / reports:.1%})"
        found.append(
            f"{share} {'is' if outside == 1 else 'are'} outside {possible(settings)}. Such totals {used}: check low, "
            "high and max_delay. Settings that are wrong can be corrected; a new experiment then inherits the rounds."
        )
    # Fewer than ten reports are too few to judge.
    if told >= 10 and counts["missing"] > 0.1 * told:
        share = f"{counts['missing']:,} of {told:,} reports ({counts['missing'] / told:.1%})"
        found.append(f"{share} are missing, so learning is slow.")
    if state.away:
        gone = ", ".join(settings.arms[i] for i in state.away)
        found.append(f"Away: {gone}. Other arms are played instead, and the guarantee is void.")
    if state.models:
        return found
    mean, length, voids = state.rhythm.mean_block, state.last - state.block_start + 1, state.panel.counts.void_windows
    # Block lengths have a geometric tail, about e^(-n/mean): one block in 160,000 is longer than 12 times the mean.
    if not state.block_closed and length > 12 * mean and voids:
        gaps = f"{counted(voids, 'time')} a missing report kept it from ending"
        found.append(f"This block has lasted {length:,} rounds (mean {mean:.0f}): {gaps}.")
    if state.phase == "running" and state.last < state.warm_until and not settings.advised:
        left = counted(state.warm_until - state.last, "more round")
        found.append(f"Warm-up after a pause: {left} recorded but not learned from.")
    return found


def guarantee(
    state: "State", value: float, trivial: float, so_far: Certificate | None, unknown: str | None
) -> tuple[str, list[str]]:
    """Return the guarantee in one sentence, and in paragraphs with its certificate and its conditions.

    value: the worst case. trivial: the largest possible regret. unknown: why there is no worst case.
    """
    if unknown is not None:
        return f"There is no guarantee with these settings: {unknown}.", []
    if (why := _not_valid(state)) is not None:
        return f"There is no guarantee, because {why}.", [_conditions(state)]
    sentence = f"The guarantee says nothing {_silent(state.settings, state.rhythm.informative_from)}."
    if value < trivial:
        horizon = state.settings.horizon
        over = counted(state.panel.rounds_played, "round") if horizon is None else counted(horizon, "round")
        most = f"you lose at most {amount(value)} compared with {_best(state)}, on average"
        gaps = f"; reports missing, void or withheld ({state.gaps:,} so far) add to that" if state.gaps else ""
        sentence = f"Whatever the effects, over {over} {most}{gaps}."
    details = [] if so_far is None else [_certificate(state, so_far)]
    return sentence, [sentence, *details, *_advice(state), _conditions(state)]


def _advice(state: "State") -> list[str]:
    """Return what the model advises, and what it can cost to follow it; nothing without a model."""
    model, player = state.adviser, state.panel.player
    if model is None or not isinstance(player, AdvisedWrapper):
        return []
    found = player.advice
    said = "The model of all totals has advised nothing yet."
    if model.rounds > model.most:
        said = f"There is no model of more than {model.most:,} rounds, so nothing is advised any more."
    elif found.opening:
        said = f"For {counted(found.opening, 'more round')} the model of all totals chooses the arms itself."
    elif found.advised is not None and found.target is not None:
        said = (
            f"The model of all totals advises {_shares(state, found.advised)}. With what the ends of blocks show that "
            f"is {_shares(state, found.target)}; the learner went {found.followed:.0%} of the way there."
        )
    # Advice that was right may have earned more than its steps have cost.
    spent = amount(found.spent) if found.spent > 0.0 else "nothing"
    price = f"If all advice is wrong, that adds {spent} to the guarantee, by now at most {amount(found.budget)}."
    return [f"{said} {price}"]


def _shares(state: "State", shares: Sequence[float]) -> str:
    return ", ".join(f"{arm} {probability(share)}" for arm, share in zip(state.settings.arms, shares, strict=True))


def _best(state: "State") -> str:
    M = state.n_units
    return "the best arm" if M == 1 else f"the best single arm for all {M} units, added up over them"


def _not_valid(state: "State") -> str | None:
    """Return why the proofs do not hold; None if they do."""
    reasons = {
        "an arm has been away": state.arm_was_away,
        "rounds were inherited from another experiment": state.inherited is not None,
        f"totals were out of range ({state.unexplained:,}), so low, high or max_delay is wrong": state.unexplained > 0,
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _certificate(state: "State", found: Certificate) -> str:
    """Return what the certificate says after the rounds so far."""
    after = f"after {counted(found.rounds, 'round')} and {counted(found.updates, 'update')}"
    says = f"bounds what is lost compared with {_best(state)}; this is one value of it."
    if not found.informative:
        says += f" It says nothing yet: it is not below {amount(found.trivial)}, the largest possible loss."
    stopped = "it does not hold" if found.any_time is None else f"the figure is {amount(found.any_time)} instead"
    return (
        f"The certificate {after} is {amount(found.value)}. Its mean over the player's randomness {says} If you stop "
        f"the experiment because of what it shows, {stopped}."
    )


def _conditions(state: "State") -> str:
    """Return the conditions under which the bounds hold."""
    d, late = state.settings.max_delay, state.settings.late_share
    last = f"last at most {counted(d, 'more round')}" if d else "arrive in their own round"
    if late:
        last = f"fade as given, with at most {late:.1%} after {counted(d, 'more round')},"
    return (
        "Bounds are on an average over the player's own randomness, not on this single run; they assume that effects "
        f"{last} and stay within the range given, that all arms can be played, and that reports are complete, but for "
        "those whose price the certificate includes."
    )


def warm_beginning(experiment: str | None, updates: float, price: float) -> str:
    """Return what the guarantee includes for the prior of the settings. experiment: the one that has shown it."""
    whose = "what was known" if experiment is None else f"what experiment {experiment} had shown"
    includes = f"The guarantee includes what that costs if it is wrong: at most {amount(price, digits=3)}."
    return f"It begins with {whose}, worth {updates:g} updates. {includes}"
