"""The guarantee as a page shows it: its paragraphs and figures, and the certificate term by term. No I/O here."""

from collections.abc import Mapping
from typing import Any

from aftereffect.service.dashboard.rendering import counted, percent, rounded, whole

TERMS = {
    "ends": "Across the first and last rounds",
    "drift": "Chances moved while effects were on their way",
    "first rate": "The rate to begin with",
    "penalty": "The rate has grown",
    "cost": "Estimates are noisy",
    "open stretch": "Seen, not yet learned from",
    "missing": "Reports missing, void or held back",
}
"""What the terms of a certificate are for."""


def guarantee(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee: its words and figures, and what the run so far says of itself."""
    given = view["guarantee"]
    start = given["informative_from"]
    facts = [("Worst case speaks from round", "never" if start is None else whole(start))]
    if given["value"] is not None and given["informative"]:
        facts.append((f"Over {counted(given['horizon'], 'round')}", rounded(given["value"])))
        facts.append(("A round", rounded(given["per_round"])))
    return {
        **{key: given[key] for key in ("void", "paragraphs", "informative_from", "informative")},
        "facts": facts if given["value"] is not None else [],
        "reached": view["round"] / start if start else 0.0,
        "certificate": certificate(given),
    }


def certificate(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the certificate so far, term by term, and how near it is to saying something."""
    found = given["certificate"]
    if found is None or found["value"] is None:
        return None
    most = found["trivial"] or 0.0
    share = most / found["value"] if found["value"] > 0.0 else 1.0
    words = "It says something: it is below" if found["informative"] else "It says nothing yet: it is not below"
    if given["void"]:
        words = "Void, it would be below" if found["value"] < most else "Void, and not below"
    return {
        "value": rounded(found["value"]),
        "terms": [(TERMS[name], rounded(term)) for name, term in found["terms"].items() if term],
        "informative": found["informative"],
        "most": rounded(most),
        "reached": share,
        "words": f"{words} {rounded(most)}, the most that regret can be after {counted(found['rounds'], 'round')}.",
        "near": f"{percent(min(share, 1.0))} of the way to a figure that says something",
    }
