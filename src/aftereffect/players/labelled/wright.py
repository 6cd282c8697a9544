"""The Wright omega function of a real number: the ω > 0 with ω + ln ω = y.

Written for kernels, so without SciPy. It gives Zimmert and Seldin's hybrid regulariser a closed form where
the obvious one, Lambert's W(e^y), overflows.

Reference: Lawrence, Corless and Jeffrey, "Algorithm 917: complex double-precision evaluation of the Wright ω
function", ACM TOMS 38 (2012), whose iteration (of Fritsch, Shafer and Crowley) is used for y ≥ −2.
"""

import math

from aftereffect.core.kernel import helper

# In the order of y: where each way of computing ω begins.
#
# Below this ω = e^y to the last bit: ω = e^y·e^{−ω}, and ω < 1e−17.
TINY = -40.0
# From here on ln y / y² is below the last bit of y, and y − ln y is ω.
HUGE = 1e9


@helper
def wright_omega(y: float) -> float:
    """Return ω(y).

    Below −2 the equation is solved as ω = e^y·e^{−ω}, since y − ln ω would lose the digits that y and ln ω
    share. Above, a residual r = y − ω − ln ω is as exact as y itself, and the iteration converges with its
    fourth power: from these first guesses two steps are enough. Against 45 digits the relative error stays
    below 4e−16; where ω is below the least double the answer is 0.

    It rises from 0, as e^y far to the left, through ω(1) = 1, to y − ln y far to the right:

    >>> wright_omega(1.0), wright_omega(1.0 + math.e)
    (1.0, 2.718281828459045)
    >>> wright_omega(-800.0), wright_omega(1e300)
    (0.0, 1e+300)
    >>> [abs(wright_omega(y) + math.log(wright_omega(y)) - y) < 1e-15 for y in (-1.5, 0.0, 0.5)]
    [True, True, True]
    """
    if y < TINY:
        return math.exp(y)
    if y > HUGE:
        return y - math.log(y)
    if y < -2.0:
        power = math.exp(y)
        w = power
        # Newton doubles the digits each time, from an error below w² < 0.02.
        for _ in range(3):
            decayed = power * math.exp(-w)
            w -= (w - decayed) / (1.0 + decayed)
        return w
    w = math.exp((y - 1.0) * (2.0 / 3.0)) if y < 1.0 else y - math.log(y) + math.log(y) / y
    for _ in range(2):
        r = y - w - math.log(w)
        q = 1.0 + w
        t = q * (q + r * (2.0 / 3.0))
        w *= 1.0 + (r / q) * (t - 0.5 * r) / (t - r)
    return w
