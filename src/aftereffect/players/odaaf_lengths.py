"""How long ODAAF and its variants play each arm by the end of phase m: n_m of Pike-Burke et al. (2018).

With T = horizon, D = 2⁻ᵐ (the gap that phase m can see), E = mean_delay, V = delay_variance, d = max_delay
and ℓ = ln(T D²), all lengths but the last have the form

    q(x) = ⌈ D⁻² ( √(2ℓ) + √(2ℓ + (8/3)Dℓ + 2Dx) )² ⌉

    (14)   ODAAF      q(3mE)                            only E is known
    (18)   ODAAF-B    max( min(md, (14)), q(2E) )       E, and that no delay exceeds d
    (25)   ODAAF-V    q(2(E + 2V))                      E and V
    (28)   by d alone  ⌈ (2D²)⁻¹ ( √ℓ + √(ℓ + 4Dmd) )² ⌉

In print (18) begins m·min(d, (14)/m); here m is multiplied in, which keeps whole numbers whole. The published
curves of ODAAF turn where (14) does with (m+1)E in place of mE: `offset=1` gives those lengths.

Chosen here: once T D² < 1 the logarithm is negative, and is taken as 0; no phase begins with T D² < e, beyond
the first; a length is at least 1, and at most T, since a longer one never ends.

Reference: Pike-Burke, Agrawal, Szepesvári and Grünewälder, "Bandits with delayed, aggregated anonymous
feedback", ICML 2018, and its supplement.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import owned


def log_term(horizon: int, phase: int) -> float:
    """Return ℓ = ln(T D²) with D = 2⁻ᵐ, 0 where it would be negative."""
    return max(math.log(horizon) - 2 * phase * math.log(2.0), 0.0)


def whole(horizon: int, value: float) -> int:
    """Round a length up, into 1..T; an overflow to infinity becomes T."""
    return max(math.ceil(min(value, horizon)), 1)


def quadratic(horizon: int, phase: int, x: float) -> int:
    """Return q(x) in phase m, the form that (14), (18) and (25) share."""
    D, log = 0.5**phase, log_term(horizon, phase)
    root = math.sqrt(2.0 * log) + math.sqrt(2.0 * log + 8.0 / 3.0 * D * log + 2.0 * D * x)
    return whole(horizon, root / D * (root / D))


def mean_length(horizon: int, phase: int, mean_delay: float, offset: int = 0) -> int:
    """Return n_m of ODAAF by (14), with (m + offset)E where it has mE.

    With horizon 250,000 and mean delay 50, as its curves have it:

    >>> [mean_length(250_000, phase, 50.0, offset=1) for phase in (1, 2, 3, 4)]
    [2126, 6548, 18668, 51147]
    """
    return quadratic(horizon, phase, 3.0 * (phase + offset) * mean_delay)


def bounded_length(horizon: int, phase: int, mean_delay: float, max_delay: int) -> int:
    """Return n_m of ODAAF-B by (18).

    >>> [bounded_length(250_000, phase, 25.0, 50) for phase in (1, 2, 3, 4)]
    [786, 2123, 6030, 17684]
    """
    wait = min(phase * max_delay, mean_length(horizon, phase, mean_delay))
    return max(wait, quadratic(horizon, phase, 2.0 * mean_delay))


def variance_length(horizon: int, phase: int, mean_delay: float, delay_variance: float) -> int:
    """Return n_m of ODAAF-V by (25)."""
    return quadratic(horizon, phase, 2.0 * (mean_delay + 2.0 * delay_variance))


def naive_length(horizon: int, phase: int, max_delay: int) -> int:
    """Return n_m by (28), for whoever knows a bound on the delay and nothing else."""
    D, log = 0.5**phase, log_term(horizon, phase)
    root = math.sqrt(log) + math.sqrt(log + 4.0 * D * phase * max_delay)
    return whole(horizon, root / D * (root / D) / 2.0)


def phase_lengths(horizon: int, length: Callable[[int], int]) -> NDArray[np.int64]:
    """Return n_1 < n_2 < ... for all phases that can begin within the horizon.

    Two arms or more are in play until the end of a phase, so none begins after one with 2 n_m ≥ T.

    >>> phase_lengths(1000, lambda phase: mean_length(1000, phase, 2.0))
    array([274, 785])
    """
    found = [length(1)]
    while 2 * found[-1] < horizon and log_term(horizon, len(found) + 1) >= 1.0:
        found.append(length(len(found) + 1))
    return owned(np.array(found, dtype=np.int64))
