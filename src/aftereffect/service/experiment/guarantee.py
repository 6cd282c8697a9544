"""What is guaranteed: beforehand, whatever happens, and so far, from what the run itself has shown.

Both bound an average over the player's own chances (`players/certificate.py`). For several units they are for the sum
of their regrets against one common arm. A report that is missing, void or held back has its price in the certificate;
the worst case is for complete reports.
"""

import math
from typing import Any

from aftereffect.core.errors import AftereffectError
from aftereffect.core.text import amount, counted
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.state import State


def guarantee(state: State) -> dict[str, Any]:
    """Return the worst case over the horizon (so far, if there is none), the certificate so far, and words.

    words: the paragraphs as one text.
    informative_from: the round from which on the worst case is below what any way of playing can lose, as planned.
    certificate: None before the first round has closed, and for a player that keeps no such accounts.
    """
    settings, panel, units = state.settings, state.panel, state.n_units
    rounds = settings.horizon or max(panel.rounds_played, 1)
    trivial = learner.trivial(panel, rounds)
    found: dict[str, Any] = {
        "value": None,
        "per_round": None,
        "horizon": rounds,
        "trivial": _finite(trivial),
        "informative_from": state.plan.informative_from,
        "informative": False,
        "void": state.arm_was_away,
        "certificate": None,
        "words": "",
        "paragraphs": [],
    }
    try:
        value = panel.regret_bound(rounds)
    except AftereffectError as error:
        found["words"] = f"No guarantee is known for these settings: {error}."
        found["paragraphs"] = [found["words"]]
        return found
    found["value"], found["per_round"] = _finite(value), _finite(value / (rounds * units))
    found["informative"] = value < trivial and not state.arm_was_away
    shown = certificate(state)
    if shown is not None:
        found["certificate"] = {
            **shown._asdict(),
            **{name: _finite(getattr(shown, name)) for name in ("value", "worst_case", "trivial")},
            "terms": {name: _finite(term) for name, term in shown.terms.items()},
            "informative": shown.informative and not state.arm_was_away,
        }
    found["paragraphs"] = _paragraphs(state, value, trivial, shown)
    found["words"] = " ".join(found["paragraphs"])
    return found


def certificate(state: State) -> Certificate | None:
    """Return what the run so far says of itself, None if nothing does."""
    if not state.panel.rounds_played or state.settings.player != "default":
        return None
    return state.panel.certificate()


def _finite(value: float) -> float | None:
    """A range of 1e303 times a few rounds is more than a number can say."""
    return value if math.isfinite(value) else None


def _paragraphs(state: State, value: float, trivial: float, shown: Certificate | None) -> list[str]:
    """Say both, and what they are worth."""
    so_far = "" if shown is None else _so_far(shown, state.arm_was_away)
    found = [_worst_case(state, value, trivial), so_far, _terms(state, shown)]
    if state.arm_was_away:
        found[0] = f"Void: an arm has been away, and the proofs know no such thing. Otherwise: {found[0]}"
    return [words for words in found if words]


def _worst_case(state: State, value: float, trivial: float) -> str:
    units, horizon, since = state.n_units, state.settings.horizon, state.plan.informative_from
    whom = "the best fixed arm" if units == 1 else f"the best single arm for all {units} units, added up over them"
    played = state.panel.rounds_played
    if horizon is None and not played:
        when = "says nothing, ever" if since is None else f"says something from round {since:,} on"
        return f"Before anything is played: the worst case against {whom} {when}."
    over = counted(played, "round") + " so far" if horizon is None else counted(horizon, "round")
    lines = [f"Whatever the effects, over {over} the outcome is on average at most {amount(value)} worse than {whom}."]
    # What is void says nothing, however small the figure is.
    if value < trivial and not state.arm_was_away:
        lines.append(f"That says something: no way of playing can lose more than {amount(trivial)}.")
    elif not state.arm_was_away:
        lines.append("That says nothing yet: no way of playing can lose more.")
        if since is None:
            lines.append("With this learner it never will.")
        elif horizon is None:
            lines.append(f"It says something from round {since:,} on.")
        else:
            lines.append(f"It takes {counted(since, 'round')} or more to say something.")
    gaps = state.counts["missing"] + state.counts["void"] + state.counts["withheld"]
    if gaps:
        reports = "1 report was" if gaps == 1 else f"{gaps:,} reports were"
        lines.append(f"It is for complete reports; {reports} missing, void or held back.")
    return " ".join(lines)


def _so_far(shown: Certificate, void: bool) -> str:
    missing = shown.terms["missing"]
    price = f", {amount(missing)} of it for reports that were missing, void or held back" if missing else ""
    after = f"{counted(shown.rounds, 'round')} and {counted(shown.updates, 'update')}"
    says = "something" if shown.informative else "nothing yet"
    if void:
        return (
            f"Void too, what the run so far says of itself. Otherwise: after {after}, the regret to be expected would "
            f"be at most the mean of a figure that is {amount(shown.value)} in this run{price}."
        )
    return (
        f"So far: after {after}, the regret to be expected is at most the mean of a figure that is "
        f"{amount(shown.value)} in this run{price}. That says {says}: regret can be {amount(shown.trivial)} at most."
    )


def _terms(state: State, shown: Certificate | None) -> str:
    """Say under which terms that holds."""
    both = "This bounds" if shown is None else "Both bound"
    d = state.settings.max_delay
    last = f"last at most {counted(d, 'more round')}" if d else "arrive in their own round"
    words = f"{both} an average over the player's own chances, not this one run; "
    words += f"the assumption is that effects {last} and stay within the range given."
    impossible = state.panel.counts.out_of_range
    if impossible:
        neither = "it does not hold" if shown is None else "neither holds"
        words += f" Totals out of range: {impossible:,}. So the range or max_delay is wrong, and {neither}."
    return words
