"""Logarithm, exponential and the normal distribution from + − × ÷ √ and powers of 2, alike in every bit everywhere.

Mathematics libraries differ in the last bit, and an algorithm whose choices depend on such a bit cannot be replayed
elsewhere. These are kernels: plain functions of a float, run in Python and compiled.

References: FreeBSD's msun (e_log.c, e_exp.c) for log and exp; Wichura, "Algorithm AS 241", Applied Statistics 37 (1988)
for the quantile; Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969)
for the distribution function, with the coefficients of ACM TOMS algorithm 715.
"""

import math

from aftereffect.core.kernel import helper

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 as a sum; the first part times an exponent is exact."""
SQRT_HALF = 0.7071067811865476
POWERS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
INVERSE_ROOT_2PI = 0.3989422804014327

# Coefficients from the highest power down.
LOG = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
    2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01, 0.0,
)  # fmt: skip
EXP = (
    4.13813679705723846039e-08, -1.65339022054652515390e-06, 6.61375632143793436117e-05, -2.77777777770155933842e-03,
    1.66666666666666019037e-01, 0.0,
)  # fmt: skip

QUANTILE_CENTRE = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
)  # fmt: skip
QUANTILE_CENTRE_BELOW = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
QUANTILE_SIDE = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
    3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
)  # fmt: skip
QUANTILE_SIDE_BELOW = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0,
)  # fmt: skip
QUANTILE_TAIL = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
)  # fmt: skip
QUANTILE_TAIL_BELOW = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip

CDF_CENTRE = (
    6.5682337918207449113e-2, 2.2352520354606839287, 1.6102823106855587881e2, 1.0676894854603709582e3,
    1.8154981253343561249e4,
)  # fmt: skip
CDF_CENTRE_BELOW = (
    1.0, 4.7202581904688241870e1, 9.7609855173777669322e2, 1.0260932208618978205e4, 4.5507789335026729956e4,
)  # fmt: skip
CDF_SIDE = (
    1.0765576773720192317e-8, 3.9894151208813466764e-1, 8.8831497943883759412, 9.3506656132177855979e1,
    5.9727027639480026226e2, 2.4945375852903726711e3, 6.8481904505362823326e3, 1.1602651437647350124e4,
    9.8427148383839780218e3,
)  # fmt: skip
CDF_SIDE_BELOW = (
    1.0, 2.2266688044328115691e1, 2.3538790178262499861e2, 1.5193775994075548050e3, 6.4855582982667607550e3,
    1.8615571640885098091e4, 3.4900952721145977266e4, 3.8912003286093271411e4, 1.9685429676859990727e4,
)  # fmt: skip
CDF_TAIL = (
    2.307344176494017303e-2, 2.1589853405795699e-1, 1.274011611602473639e-1, 2.2235277870649807e-2,
    1.421619193227893466e-3, 2.9112874951168792e-5,
)  # fmt: skip
CDF_TAIL_BELOW = (
    1.0, 1.28426009614491121, 4.68238212480865118e-1, 6.59881378689285515e-2, 3.78239633202758244e-3,
    7.29751555083966205e-5,
)  # fmt: skip


@helper
def polynomial(x: float, coefficients: tuple[float, ...]) -> float:
    """Return the polynomial with these coefficients, the highest power first, by Horner's rule."""
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


@helper
def log(x: float) -> float:
    """Return ln x; −∞ for 0 and NaN below 0. The error is below one unit in the last place.

    >>> log(10.0)
    2.302585092994046
    """
    if not 0.0 < x < math.inf:
        return x if x > 0.0 else -math.inf if x == 0.0 else math.nan
    # x = 2^k · (1 + f) with √½ < 1 + f ≤ √2, exactly.
    x, k = math.frexp(x)
    if x <= SQRT_HALF:
        x *= 2.0
        k -= 1
    f = x - 1.0
    s = f / (2.0 + f)
    rest = polynomial(s * s, LOG)
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + rest) + k * LN2_LOW)) - f)


@helper
def exp(x: float) -> float:
    """Return e^x; 0 and ∞ where it leaves the range of floats. The error is below one unit in the last place.

    >>> exp(0.0), round(exp(1.0), 14)
    (1.0, 2.71828182845905)
    """
    if not -746.0 < x < 710.0:
        return 0.0 if x < 0.0 else x * math.inf
    # x = k ln 2 + r with |r| ≤ ½ ln 2.
    k = int(x / LN2_HIGH + (0.5 if x > 0.0 else -0.5))
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    c = r - polynomial(r * r, EXP)
    value = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    # In two steps, as 2^k alone may leave the range of floats; only the last one of a subnormal result is not exact.
    half, scale = abs(k) // 2, 1.0
    for power in POWERS:
        if half >= power:
            scale *= 2.0**power
            half -= power
    rest = 2.0 * scale if k % 2 else scale
    return value * scale * rest if k > 0 else value / scale / rest


@helper
def normal_cdf(x: float) -> float:
    """Return Φ(x), the standard normal distribution function; relative error about 1e−15, in the lower tail too.

    >>> normal_cdf(0.0), round(normal_cdf(-1.959963984540054), 15)
    (0.5, 0.025)
    """
    size = abs(x)
    if size <= 0.67448975:
        square = x * x
        return 0.5 + x * polynomial(square, CDF_CENTRE) / polynomial(square, CDF_CENTRE_BELOW)
    if size >= 40.0:
        tail = 0.0
    elif size <= 5.656854249492381:
        tail = normal_density(size) * polynomial(size, CDF_SIDE) / polynomial(size, CDF_SIDE_BELOW)
    else:
        square = 1.0 / (size * size)
        ratio = square * polynomial(square, CDF_TAIL) / polynomial(square, CDF_TAIL_BELOW)
        tail = normal_density(size) * (INVERSE_ROOT_2PI - ratio) / size
    return tail if x < 0.0 else 1.0 - tail


@helper
def normal_density(x: float) -> float:
    """Return e^(−x²/2), the standard normal density without its constant; x² is split, because exp amplifies errors."""
    size = abs(x)
    coarse = int(size * 16.0) / 16.0 if size < 64.0 else size
    return exp(-0.5 * coarse * coarse) * exp(-0.5 * (size - coarse) * (size + coarse))


@helper
def normal_quantile(p: float) -> float:
    """Return z with Φ(z) = p, 0 < p < 1; −∞ and ∞ at 0 and 1. The relative error is about 1e−16.

    >>> round(normal_quantile(0.975), 15)
    1.959963984540054
    """
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * polynomial(r, QUANTILE_CENTRE) / polynomial(r, QUANTILE_CENTRE_BELOW)
    r = math.sqrt(-log(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        z = polynomial(r - 1.6, QUANTILE_SIDE) / polynomial(r - 1.6, QUANTILE_SIDE_BELOW)
    else:
        z = polynomial(r - 5.0, QUANTILE_TAIL) / polynomial(r - 5.0, QUANTILE_TAIL_BELOW)
    return -z if q < 0.0 else z
