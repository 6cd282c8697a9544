"""Which instances and players a study may name, and which settings each takes.

An instance is one of:

    split, delays, fixed, geometric, immediate     iid losses, one good arm; the word says how they are spread
    switching, constrained, drifting, seasonal     a table of `losses/tables.py`; `spread` is one of the words above
    pieces                                         a `shape` that was found to hurt (`pieces.py`), and a `spread`
    hard                                           the adversary of the lower bound, `gap_factor` times its gap
    stacked                                        the same with a `gap`, its noise shared by all arms unless told
    anonymous                                      rewards with random delays, stochastic anonymous feedback
    late_bills                                     the dearer an arm, the later its bill
    campaigns                                      the real coupon campaigns (`campaigns.py`)

A good arm is better by `gap`, or by `gap_scale` times √(K(d+1)/T), at most 1/2, which keeps a problem as hard as it
can be at every size. A player is one of "wrapper", "default_player", "tsallis_inf", "uniform", "naive", or a slug of
the catalogue.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses.delay_laws import checked_law
from aftereffect.losses.hard import NOISES
from aftereffect.losses.tables import LAWS
from aftereffect.players.wrapper.windows import OUT_OF_RANGE
from aftereffect.studies.pieces import SHAPES

Check = Callable[[str, Any], Any]

SPREADS = ("split", "delays", "fixed", "geometric", "immediate")
WRAPPED = ("tsallis", "exp3", "tsallis_inf", "ucb1", "uniform")
NAIVE = ("exp3", "ucb1", "tsallis_inf")


def _real(low: float | None = None, high: float | None = None, above: float | None = None) -> Check:
    return lambda name, value: checks.real(name, value, low=low, high=high, above=above)


def _choice(*options: str) -> Check:
    return lambda name, value: checks.choice(name, value, options)


def _count(low: int) -> Check:
    return lambda name, value: checks.integer(name, value, low=low)


def _delay_law(name: str, value: Any) -> Any:
    """Return a law of delays as the list a file can hold."""
    checked_law(tuple(value) if isinstance(value, list) else value, 0)
    return value


def _numbers(name: str, value: Any) -> list[int]:
    """Return a list of whole numbers."""
    if not isinstance(value, list | tuple):
        raise InvalidArgument(f"{name} must be a list of whole numbers, but got {checks.shown(value)}")
    return [checks.integer(name, number) for number in value]


_LAW = {"law": _choice(*LAWS)}
_GAP = {"gap": _real(low=0.0, high=0.5), "gap_scale": _real(low=0.0)}
_FADE = {"half_life": _real(above=0.0)}
_TABLE = {"spread": _choice(*SPREADS), **_FADE, **_LAW}

INSTANCES: Mapping[str, Mapping[str, Check]] = {
    **dict.fromkeys(("split", "delays", "fixed", "immediate"), _GAP | _LAW),
    "geometric": _GAP | _LAW | _FADE,
    "switching": _TABLE | {"gap": _real(low=0.0, high=1.0), "period": _count(1)},
    "constrained": _TABLE | {"gap": _real(low=0.0, high=1.0), "growth": _real(low=1.0)},
    "drifting": _TABLE | {"step": _real(low=0.0, high=1.0)},
    "seasonal": _TABLE | {"period": _real(above=0.0), "amplitude": _real(low=0.0, high=0.5)},
    "pieces": {"spread": _choice(*SPREADS), **_FADE, "shape": _choice(*SHAPES)},
    "hard": {"gap_factor": _real(low=0.0), "noise": _choice(*NOISES)},
    "stacked": {"gap": _real(low=0.0, high=0.25), "noise": _choice(*NOISES)},
    "anonymous": _GAP | {"delay_law": _delay_law},
    "late_bills": _LAW,
    "campaigns": {"campaigns": _numbers, "households": _count(1), "high": _real(above=0.0)},
}

_POLICY = {"out_of_range": _choice(*OUT_OF_RANGE)}
_FACTORS = {"learning_rate_factor": _real(above=0.0), "update_probability_factor": _real(above=0.0)}

PLAYERS: Mapping[str, Mapping[str, Check]] = {
    "wrapper": {"base": _choice(*WRAPPED), "tuning": _choice("corollary", "best"), **_FACTORS, **_POLICY},
    "default_player": _POLICY,
    "tsallis_inf": {"estimator": _choice("importance_weighted", "reduced_variance"), **_POLICY},
    "uniform": _POLICY,
    "naive": {"base": _choice(*NAIVE)},
    "ucb_on_clean_windows": {"width": _real(low=0.0)},
}


# Building the catalogue compiles every player in it, which is too long for reading a file: so its names stand here too,
# with what some of them need. A test holds them to the catalogue.
CATALOGUE = frozenset(
    (
        *("wrapper_tsallis_ftrl", "wrapper_exp3", "wrapper_tsallis_inf", "wrapper_ucb1", "wrapper_doubling_t"),
        *("default_player", "wrapper_unknown_d", "clw_2018", "fixed_blocks", "mini_batches", "blinded_bandit"),
        *("ucb_on_clean_windows", "ars_ucb", "ars_exp3", "odaaf", "odaaf_b", "odaaf_v", "linear_composite"),
        *("naive_exp3", "naive_ucb1", "uniform_play", "delayed_exp3", "bold_exp3", "qpm_d_ucb1", "delayed_ucb1"),
        *("zimmert_seldin_simple", "zimmert_seldin_advanced"),
    )
)
NEED_MEAN = frozenset(("odaaf", "odaaf_b", "odaaf_v"))
NEED_VARIANCE = frozenset(("odaaf_v",))
NEED_COEFFICIENTS = frozenset(("linear_composite",))
NEED_SHORT_DELAY = frozenset(("blinded_bandit",))


def slug(name: str) -> str:
    """Return a catalogue name as a study writes it.

    >>> slug("Zimmert-Seldin, advanced")
    'zimmert_seldin_advanced'
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def checked(kind: str, given: Any) -> dict[str, Any]:
    """Return an instance or player (`kind`) with its name known and its settings clean, as plain JSON types."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{kind} must be a table with a name, but got {checks.shown(given)}")
    name = given.get("name")
    known = INSTANCES if kind == "instance" else PLAYERS
    if isinstance(name, str) and name in known:
        rules: Mapping[str, Check] = known[name]
    elif kind == "player" and isinstance(name, str) and name in CATALOGUE:
        rules = {}
    else:
        listed = (*known, *(sorted(CATALOGUE) if kind == "player" else ()))
        raise InvalidArgument(f"{kind}.name must be one of {', '.join(listed)}, but got {checks.shown(name)}")
    clean: dict[str, Any] = {"name": name}
    for key, value in given.items():
        if key == "name":
            continue
        if key not in rules:
            have = ", ".join(rules) or "none"
            raise InvalidArgument(f"{kind}.{key} must be a setting of {name!r} (it has {have}), but it is not")
        clean[key] = rules[key](f"{kind}.{key}", value)
    if "gap" in clean and "gap_scale" in clean:
        raise InvalidArgument(f"{kind}.gap must be left out where gap_scale is given, but got {clean['gap']!r}")
    return clean
