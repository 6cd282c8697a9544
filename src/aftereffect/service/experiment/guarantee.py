"""The guarantee: a worst-case regret bound that holds in advance, and a certificate computed from the run so far.

Both bound the regret in expectation over the player's randomness (`players/wrapper/certificate.py`). With several
units they bound the sum of the units' regrets against one common arm. The certificate accounts for missing, void and
withheld reports; the worst case assumes complete reports.
"""

import math
from typing import Any

from aftereffect.core.errors import AftereffectError
from aftereffect.core.text import amount, counted
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.state import State
from aftereffect.service.messages import finite


def guarantee(state: State) -> dict[str, Any]:
    """Return the worst case over the horizon (or the rounds so far), the certificate so far, and an explanation.

    sentence: the guarantee in plain words. words: the paragraphs as one string.
    trivial: the largest possible regret. informative_from: the round from which the worst case stays below it.
    certificate: None before the first round has closed, and for the player "paper". All of these are about the rounds
    after the pilot. pilot: what the pilot costs, None if there is none.
    """
    panel, void = state.panel, state.arm_was_away or state.inherited is not None
    before = state.pilot_rounds
    rounds = max(panel.rounds_played, 1) if state.settings.horizon is None else state.settings.horizon - before
    trivial, value, so_far = learner.trivial(panel, rounds), math.inf, None
    try:
        late = learner.late_price(state.settings)
        value = panel.regret_bound(rounds) + late * trivial
    except AftereffectError as error:
        paragraphs = [f"No guarantee is known for these settings: {error}."]
    else:
        if panel.rounds_played and state.settings.player != "paper":
            so_far = panel.certificate()
            if extra := late * so_far.trivial:
                total, terms = so_far.value + extra, so_far.terms | {"late effects": extra}
                # Stopping by what a run shows is not covered by the proof for late effects.
                so_far = so_far._replace(value=total, terms=terms, any_time=None, informative=total < so_far.trivial)
                so_far = so_far._replace(
                    worst_case=so_far.worst_case + extra, worst_case_from=state.plan.informative_from
                )
        paragraphs = [_worst_case(state, value, trivial), *_so_far(so_far, void), _terms(state, so_far is not None)]
    sentence = _plainly(state, min(value, trivial), so_far, void, informative=value < trivial)
    if warm := "" if void else _warm(state):
        paragraphs.append(warm)
        sentence = f"{sentence} {warm}"
    pilot = _pilot(state, void) if before else None
    if pilot is not None:
        paragraphs.insert(0, pilot["words"])
        said = pilot["words"] if state.in_pilot else f"{sentence} {pilot['words']}"
        sentence = sentence if void else said
    return {
        "value": finite(value),
        "per_round": finite(value / (rounds * state.n_units)),
        "horizon": rounds,
        "trivial": finite(trivial),
        "informative_from": state.plan.informative_from,
        "informative": value < trivial and not void,
        "void": void,
        "certificate": None if so_far is None else _plain(so_far, void),
        "pilot": pilot,
        "sentence": sentence,
        "words": " ".join(paragraphs),
        "paragraphs": paragraphs,
    }


def _pilot(state: State, void: bool) -> dict[str, Any]:
    """Return what the pilot costs: at most, on average over its schedule, and as estimated when it ended."""
    rounds, M, K = state.pilot_rounds, state.n_units, len(state.settings.arms)
    most = learner.trivial(state.panel, rounds)
    mean, cost = (1.0 - 1.0 / K) * most, None if state.accepted is None else state.accepted["cost"]
    over = f"The pilot of {counted(rounds, 'round')}{'' if M == 1 else f' in {M} units'}"
    if cost is None:
        words = f"{over} plays every arm about equally often. It loses at most {amount(most)} compared with the best "
        words += f"arm, and at most {amount(mean)} on average over its random schedule."
    else:
        about, low, high = (amount(each, digits=3) for each in cost)
        words = f"{over} has cost about {about} compared with the best arm (95% band: {low} to {high})."
    words += "" if void else " The guarantee begins after it."
    if state.in_pilot and not void:
        assumed = counted(state.settings.max_delay, "round")
        words += f" Its figures assume a carry-over (max_delay) of {assumed} until one is accepted."
    price = 0.0 if state.in_pilot else learner.prior_price(state.panel)
    if price and not void:
        words += f" Using the pilot's results as a prior adds at most {amount(price, digits=3)} to the guarantee."
    found = {"rounds": rounds, "most": finite(most), "mean": finite(mean), "cost": cost, "prior": finite(price)}
    return {**found, "words": words}


def _warm(state: State) -> str:
    """Return a sentence on what the guarantee includes for the prior of the settings; empty without one."""
    prior = state.settings.prior
    if prior is None:
        return ""
    whose = "what was known" if prior.experiment is None else f"what experiment {prior.experiment} had measured"
    price = amount(learner.prior_price(state.panel), digits=3)
    worth = f"It begins with {whose}, worth {prior.updates:g} updates."
    return f"{worth} The guarantee includes what that costs if it is wrong: at most {price}."


def _not_covered(state: State) -> int:
    """Return the number of totals out of range; 0 if late effects, which the guarantee includes, explain them."""
    explained = state.settings.out_of_range == "clip" and state.settings.late_share > 0.0
    return 0 if explained else state.panel.counts.out_of_range


def _plainly(state: State, most: float, so_far: Certificate | None, void: bool, *, informative: bool) -> str:
    """Return the guarantee in plain words. most: the smaller one of the worst case and the largest possible loss."""
    outside = _not_covered(state)
    if void or outside:
        why = "an arm has been away" if state.arm_was_away else "rounds were inherited from another experiment"
        if not void:
            why = f"totals were out of range ({outside:,}), which shows that low, high or max_delay is wrong"
        return f"There is no guarantee, because {why}."
    played, horizon, since = state.panel.rounds_played, state.settings.horizon, state.plan.informative_from
    after = " after the pilot" if state.pilot_rounds else ""
    past = f"over the {counted(played, 'round')} so far{after and ' since the pilot'}"
    over, lines = past if horizon is None else f"over {counted(horizon - state.pilot_rounds, 'round')}{after}", []
    proved = "" if so_far is None else amount(min(so_far.value, so_far.trivial))
    complete = not state.gaps and (so_far is None or "corrections" not in so_far.terms)
    if played and so_far is not None and not complete:
        # Only the certificate takes gaps and late corrections into account.
        lines = [f"Whatever happens, {past} you lose at most {proved} compared with the best arm, on average."]
    elif played or horizon is not None:
        now = f"; so far at most {proved}" if proved else ""
        whole = "" if complete else ", if no report is missing"
        lines = [f"Whatever happens, {over} you lose at most {amount(most)} compared with the best arm{now}{whole}"]
        lines[0] += ", on average."
    if not informative and not (so_far is not None and so_far.informative):
        lines.append("This is no better than the largest possible loss." if lines else "Nothing is guaranteed yet.")
        if since is not None and (horizon is None or since <= horizon):
            date = state.date_ahead(since)
            lines.append(f"The guarantee is informative from round {since:,} on{f' ({date})' if date else ''}.")
    return " ".join(lines)


def _plain(certificate: Certificate, void: bool) -> dict[str, Any]:
    """Return a certificate as JSON."""
    found = certificate._asdict()
    found |= {name: finite(found[name]) for name in ("value", "any_time", "worst_case", "trivial") if found[name]}
    found["terms"] = {name: finite(term) for name, term in certificate.terms.items()}
    return {**found, "informative": certificate.informative and not void}


def _worst_case(state: State, value: float, trivial: float) -> str:
    units, horizon, since = state.n_units, state.settings.horizon, state.plan.informative_from
    whom = "the best fixed arm" if units == 1 else f"the best single arm for all {units} units, added up over them"
    played = state.panel.rounds_played
    if horizon is None and not played:
        when = "is never informative" if since is None else f"is informative from round {since:,} on"
        lines = [f"Before anything is played: the worst case against {whom} {when}."]
    else:
        rounds = played if horizon is None else horizon - state.pilot_rounds
        over = counted(rounds, "round") + (" so far" if horizon is None else "")
        over += " after the pilot" if state.pilot_rounds else ""
        most = f"on average at most {amount(value)} worse than {whom}"
        lines = [f"Whatever the effects, over {over} the outcome is {most}."]
        if not (state.arm_was_away or state.inherited):
            lines += _worth(value, trivial, since, horizon)
        if gaps := state.gaps:
            reports = "1 report was" if gaps == 1 else f"{gaps:,} reports were"
            lines.append(f"It assumes complete reports; {reports} missing, void or withheld.")
    if state.arm_was_away or state.inherited:
        why = "an arm has been away" if state.arm_was_away else "rounds were inherited from another experiment"
        lines.insert(0, f"Not valid: {why}, which the proofs do not cover. Otherwise this would hold:")
    return " ".join(lines)


def _worth(value: float, trivial: float, since: int | None, horizon: int | None) -> list[str]:
    """Return sentences on whether a bound is below the largest possible regret, or when it will be."""
    if value < trivial:
        return [f"This is informative: the largest possible loss is {amount(trivial)}."]
    when = "With these settings it never will be."
    if since is not None:
        when = f"It is informative from round {since:,} on."
        if horizon is not None:
            when = f"It takes {counted(since, 'round')} or more to be informative."
    return ["This is not informative yet: it is not below the largest possible loss.", when]


def _so_far(shown: Certificate | None, void: bool) -> list[str]:
    if shown is None:
        return []
    missing = shown.terms["missing"]
    price = f", {amount(missing)} of it for reports that were missing, void or withheld" if missing else ""
    if (late := shown.terms.get("corrections")) is not None:
        price += f", {amount(late)} of it for totals that were corrected after they had been learned from"
    after = f"after {counted(shown.rounds, 'round')} and {counted(shown.updates, 'update')}"
    figure = f"at most the mean of the certificate, which is {amount(shown.value)} in this run{price}."
    if void:
        return [f"Nor is the certificate so far. Otherwise, {after}, expected regret would be {figure}"]
    says = "informative" if shown.informative else "not informative yet"
    worth = f"This is {says}: regret can be at most {amount(shown.trivial)}."
    instead = "it does not hold" if shown.any_time is None else f"the figure is {amount(shown.any_time)} instead"
    stopped = f"If you stop the experiment because of what it shows, {instead}."
    return [f"So far: {after}, expected regret is {figure} {worth} {stopped}"]


def _terms(state: State, certified: bool) -> str:
    """Return the conditions under which the bounds hold."""
    both = "Both bound" if certified else "This bounds"
    d = state.settings.max_delay
    last = f"last at most {counted(d, 'more round')}" if d else "arrive in their own round"
    if late := state.settings.late_share:
        last = f"fade as given, with at most {late:.1%} after {counted(d, 'more round')},"
    words = f"{both} an average over the player's own randomness, not this single run; "
    words += f"the assumption is that effects {last} and stay within the range given."
    if impossible := _not_covered(state):
        neither = "neither holds" if certified else "it does not hold"
        words += f" Totals out of range: {impossible:,}. So the range or max_delay is wrong, and {neither}."
    return words
