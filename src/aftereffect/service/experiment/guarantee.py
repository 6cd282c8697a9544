"""The guarantee: a worst-case regret bound that holds in advance, and a certificate computed from the run so far.

Both bound the regret in expectation over the player's randomness (`players/wrapper/certificate.py`). With several
units they bound the sum of the units' regrets against one common arm. The certificate accounts for missing, void and
withheld reports; the worst case assumes complete reports.
"""

import math

from aftereffect.core.errors import AftereffectError
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.service import words
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.state import State
from aftereffect.service.messages import CertificateSoFar, Guarantee, finite


def guarantee(state: State) -> Guarantee:
    """Return the worst case over the horizon (or the rounds so far), the certificate so far, and both in words."""
    panel = state.panel
    rounds = max(panel.rounds_played, 1) if state.settings.horizon is None else state.settings.horizon
    trivial, value, so_far, unknown = learner.trivial(panel, rounds), math.inf, None, None
    try:
        value = panel.regret_bound(rounds) + learner.late_price(state.settings) * trivial
        so_far = _certificate(state)
    except AftereffectError as error:
        unknown = str(error)
    sentence, paragraphs = words.guarantee(state, value, trivial, so_far, unknown)
    prior = state.settings.prior
    if prior is not None and not state.void:
        warm = words.warm_beginning(prior.experiment, prior.updates, learner.prior_price(panel))
        paragraphs.append(warm)
        sentence = f"{sentence} {warm}"
    return Guarantee(
        value=finite(value),
        per_round=finite(value / (rounds * state.n_units)),
        horizon=rounds,
        trivial=finite(trivial),
        informative_from=state.rhythm.informative_from,
        informative=value < trivial and not state.void,
        void=state.void,
        certificate=None if so_far is None else _plain(so_far, state.void),
        sentence=sentence,
        words=" ".join(paragraphs),
        paragraphs=paragraphs,
    )


def _certificate(state: State) -> Certificate | None:
    """Return the certificate so far with the price of late effects; None if there is none."""
    if not state.panel.rounds_played or state.settings.player == "paper":
        return None
    found = state.panel.certificate()
    if not (extra := learner.late_price(state.settings) * found.trivial):
        return found
    total = found.value + extra
    return found._replace(
        value=total,
        terms=found.terms | {"late effects": extra},
        # Stopping by what a run shows is not covered by the proof for late effects.
        any_time=None,
        informative=total < found.trivial,
        worst_case=found.worst_case + extra,
        worst_case_from=state.rhythm.informative_from,
    )


def _plain(certificate: Certificate, void: bool) -> CertificateSoFar:
    """Return a certificate without numbers that are not finite."""
    found = certificate._asdict()
    found |= {name: finite(found[name]) for name in ("value", "any_time", "worst_case", "trivial") if found[name]}
    found["terms"] = {name: finite(term) for name, term in certificate.terms.items()}
    return CertificateSoFar(**found | {"informative": certificate.informative and not void})
