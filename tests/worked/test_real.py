"""log, exp and the normal distribution against the mathematics library; Python and compiled code bit for bit."""

import math
import random as reference
from statistics import NormalDist

import numpy as np

from aftereffect.core import kernel, random, real

NUMBERS = reference.Random(7)
WIDE = [math.exp(NUMBERS.uniform(-708.0, 709.0)) for _ in range(500)]
NARROW = [NUMBERS.uniform(0.5, 2.0) for _ in range(500)]
EXPONENTS = [NUMBERS.uniform(-708.0, 709.0) for _ in range(500)] + [NUMBERS.uniform(-1.0, 1.0) for _ in range(500)]
UNIFORM = [NUMBERS.random() for _ in range(500)] + [math.exp(NUMBERS.uniform(-700.0, -1.0)) for _ in range(500)]
POINTS = [NUMBERS.uniform(-8.0, 8.0) for _ in range(1000)]


def within(found: float, expected: float, relative: float) -> bool:
    return abs(found - expected) <= relative * abs(expected)


def test_log_is_the_logarithm():
    for x in (*WIDE, *NARROW, 5e-324, 1e-310, 2.0**-1022, 1.0, math.nextafter(math.inf, 0.0)):
        assert within(real.log(x), math.log(x), 1e-14), x


def test_exp_is_the_exponential():
    for x in (*EXPONENTS, 0.0, 1e-300, 709.78):
        assert within(real.exp(x), math.exp(x), 1e-14), x


def test_results_below_the_least_normal_number_are_within_one_unit():
    assert abs(real.exp(-740.0) - math.exp(-740.0)) <= 5e-324
    assert real.exp(-744.0) == math.exp(-744.0)


def test_distribution_function_is_that_of_the_normal():
    for x in POINTS:
        assert within(real.normal_cdf(x), 0.5 * math.erfc(-x / math.sqrt(2.0)), 1e-12), x


def test_lower_tail_lies_between_two_terms_of_its_asymptotic_series():
    for x in (-37.0, -20.0, -10.0):
        first = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) / -x
        assert first * (1.0 - x**-2) < real.normal_cdf(x) < first * (1.0 - x**-2 + 3.0 * x**-4)


def test_quantile_is_that_of_the_normal():
    for p in UNIFORM:
        assert within(real.normal_quantile(p), NormalDist().inv_cdf(p), 1e-12), p


def test_edges_are_infinite_or_not_a_number():
    assert real.log(0.0) == -math.inf
    assert real.log(math.inf) == math.inf
    assert math.isnan(real.log(-1.0))
    assert math.isnan(real.log(math.nan))
    assert (real.exp(-math.inf), real.exp(-800.0)) == (0.0, 0.0)
    assert (real.exp(800.0), real.exp(math.inf)) == (math.inf, math.inf)
    assert math.isnan(real.exp(math.nan))
    assert (real.normal_cdf(-math.inf), real.normal_cdf(math.inf)) == (0.0, 1.0)
    assert math.isnan(real.normal_cdf(math.nan))
    assert (real.normal_quantile(0.0), real.normal_quantile(1.0)) == (-math.inf, math.inf)
    assert math.isnan(real.normal_quantile(1.5))


def four(params, x, found):
    for i in range(len(x)):
        found[i, 0] = real.log(x[i])
        found[i, 1] = real.exp(1400.0 * x[i] - 700.0)
        found[i, 2] = real.normal_cdf(60.0 * x[i] - 30.0)
        found[i, 3] = real.normal_quantile(x[i])


def test_python_and_compiled_code_agree_bit_for_bit():
    x = np.random.default_rng(3).random(2000)
    compiled, interpreted = np.zeros((2000, 4)), np.zeros((2000, 4))
    kernel.compiled(four)((), x, compiled)
    four((), x.tolist(), interpreted)
    assert compiled.tobytes() == interpreted.tobytes()


def many(params, rng, found):
    for i in range(len(found)):
        found[i] = random.normal(rng)


def test_normal_numbers_have_the_moments_of_the_normal():
    found = np.zeros(100_000)
    kernel.compiled(many)((), random.stream(5, 0, 0), found)
    # Standard errors of the first four moments of n normal numbers; five of them: a false alarm in 400,000.
    for power, (expected, variance) in enumerate([(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)], start=1):
        assert abs((found**power).mean() - expected) < 5.0 * math.sqrt(variance / len(found))
