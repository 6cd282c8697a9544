"""The lag model against dense linear algebra: the same posterior from one large normal distribution."""

import json
import math

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.core import kernel
from aftereffect.lags import kernels, model

RANDOM = np.random.default_rng(11)


def played(rounds, n_arms=2, missing=0.0, noise=0.3, units=1, seed=5):
    """Arms in random holds, and totals with effects at lags 0 to 2."""
    random = np.random.default_rng(seed)
    curves = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.5], [0.5, 0.0, 0.0]])[:n_arms]
    arms = np.array([np.repeat(random.integers(n_arms, size=rounds), random.integers(1, 5, size=rounds))[:rounds]
                     for _ in range(units)]).T  # fmt: skip
    totals = 5.0 + 10.0 * np.arange(units) + noise * random.standard_normal((rounds, units))
    for u in range(units):
        for t in range(rounds):
            for lag in range(3):
                if t + lag < rounds:
                    totals[t + lag, u] += curves[arms[t, u], lag]
    totals[random.random((rounds, units)) < missing] = np.nan
    return arms, totals


def told(arms, totals, **settings):
    found = ae.LagModel(int(arms.max()) + 1, n_units=arms.shape[1], **settings)
    for row, values in zip(arms.tolist(), totals.tolist(), strict=True):
        found.tell(row, [None if math.isnan(value) else value for value in values])
    return found


def dense(found, arms, totals, member):
    """Return coefficients, covariance/σ² and log evidence of a member from the covariance matrix of all totals.

    Level: a flat prior for each unit, by projection on the contrasts of its totals. Weights of old rounds: none.
    """
    params, K = found._params, found.n_arms
    n = kernels.width(params, K)
    fadings, scales = len(params.logs), len(params.scales)
    rho = kernels.NOISES[member // (fadings * scales)][0]
    h, tau = member // scales % fadings, float(params.scales[member % scales])
    B = params.knots
    one = np.linalg.inv(params.precisions.reshape(-1, B, B)[h]) * tau**2
    prior = np.kron(np.eye(K) + kernels.COMMON, one)
    prior = np.block([
        [prior, np.zeros((len(prior), params.season))],
        [np.zeros((params.season, len(prior))), kernels.SEASON_VARIANCE * np.eye(params.season)],
    ])  # fmt: skip
    weights = params.weights.reshape(-1, B)
    xs, ys, noises, levels = [], [], [], []
    rounds, units = arms.shape
    for u in range(units):
        rows = np.zeros((rounds, n - 1))
        for t in range(rounds):
            for lag in range(min(t, found.max_lag) + 1):
                arm = arms[t - lag, u]
                rows[t, arm * B : (arm + 1) * B] += weights[lag]
            if params.season:
                rows[t, K * B + t % params.season] = 1.0
        seen = np.flatnonzero(~np.isnan(totals[:, u]))
        apart = np.abs(seen[:, None] - seen[None, :])
        xs.append(rows[seen])
        ys.append(params.sign * totals[seen, u])
        noises.append(rho**apart if rho else np.eye(len(seen)))
        levels.append(np.ones((len(seen), 1)))
    X, y = np.vstack(xs), np.concatenate(ys)
    V, L = block(noises), block(levels)
    # Contrasts orthogonal to the levels are what a flat prior leaves.
    Q = np.linalg.svd(L.T)[2][L.shape[1] :]
    X, y, V = Q @ X, Q @ y, Q @ V @ Q.T
    W = np.linalg.inv(V)
    precision = np.linalg.inv(prior) + X.T @ W @ X
    mean = np.linalg.solve(precision, X.T @ W @ y)
    marginal = V + X @ prior @ X.T
    square = y @ np.linalg.solve(marginal, y) / len(y)
    evidence = -0.5 * np.linalg.slogdet(marginal)[1] - 0.5 * len(y) * math.log(square)
    return mean, np.linalg.inv(precision), evidence, square


def block(parts):
    whole = np.zeros((sum(len(part) for part in parts), sum(part.shape[1] for part in parts)))
    row = column = 0
    for part in parts:
        whole[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return whole


@pytest.fixture
def without_memory(monkeypatch):
    """The model as it is if old rounds count like new ones."""
    monkeypatch.setattr(kernels, "MEMORY", 0.0)
    monkeypatch.setattr(kernels, "BOOST", 1.0)
    monkeypatch.setattr(kernel, "entry", lambda function, *at: function)


@pytest.mark.parametrize(("settings", "missing", "units"), [
    ({"max_lag": 2}, 0.0, 1),
    ({"max_lag": 4, "direction": "maximize"}, 0.3, 1),
    ({"max_lag": 3, "season": 3}, 0.2, 3),
])  # fmt: skip
@pytest.mark.usefixtures("without_memory")
def test_posterior_and_evidence_are_those_of_one_large_normal_distribution(settings, missing, units):
    arms, totals = played(26, n_arms=3, missing=missing, units=units)
    found = told(arms, totals, **settings)
    params, K, numbers = found._params, found.n_arms, found._numbers
    n = kernels.width(params, K)
    kernels.fit(params, K, numbers)
    of_a_noise = len(params.logs) * len(params.scales)
    white = [m for m in range(kernels.members(params)) if kernels.NOISES[m // of_a_noise][1] == 0.0]
    logs = []
    for member in white:
        sigma = math.sqrt(kernels.solve(params, K, numbers, member))
        place = kernels.scratch_at(params, K) + 2 * (n + 1)
        coefficients = numbers[place + 2 * n * n : place + 2 * n * n + n - 1]
        factor = np.tril(numbers[place : place + n * n].reshape(n, n).T)[:-1, :-1]
        mean, covariance, evidence, square = dense(found, arms, totals, member)
        np.testing.assert_allclose(coefficients, mean, atol=1e-7)
        np.testing.assert_allclose(np.linalg.inv(factor @ factor.T), covariance, atol=1e-7)
        assert sigma**2 == pytest.approx(square, rel=1e-7)
        logs.append(evidence)
    mine = np.log(numbers[kernels.HEAD : kernels.HEAD + kernels.members(params)][white])
    np.testing.assert_allclose(mine - mine[0], np.array(logs) - logs[0], atol=1e-6)


def test_compiled_and_interpreted_are_equal_bit_for_bit(monkeypatch):
    arms, totals = played(25, missing=0.2, units=2)
    compiled = told(arms, totals, max_lag=3, direction="maximize")
    monkeypatch.setattr(kernel, "entry", lambda function, *at: function)
    plain = told(arms, totals, max_lag=3, direction="maximize")
    saved = kernels.scratch_at(plain._params, plain.n_arms)
    assert (compiled._numbers[:saved] == plain._numbers[:saved]).all()
    assert (compiled.best == plain.best).all()
    assert compiled.loss_of_settling == plain.loss_of_settling


def test_a_model_restored_goes_on_bit_for_bit():
    arms, totals = played(60, missing=0.1)
    whole = told(arms, totals, max_lag=5)
    half = told(arms[:30], totals[:30], max_lag=5)
    rest = ae.LagModel.from_state(json.loads(json.dumps(half.state())))
    for row, values in zip(arms[30:].tolist(), totals[30:].tolist(), strict=True):
        rest.tell(row, [None if math.isnan(value) else value for value in values])
    place = kernels.scratch_at(whole._params, whole.n_arms)
    assert (rest._numbers[:place] == whole._numbers[:place]).all()


def test_corrections_and_late_totals_are_exact():
    arms, totals = played(40)
    wrong = totals.copy()
    wrong[7, 0], wrong[20, 0] = 99.0, np.nan
    mended = told(arms, wrong, max_lag=4)
    mended.correct(8, float(totals[7, 0]))
    mended.correct(21, float(totals[20, 0]))
    right = told(arms, totals, max_lag=4)
    place = kernels.scratch_at(right._params, right.n_arms)
    assert (mended._numbers[:place] == right._numbers[:place]).all()


def test_it_finds_the_effects_by_lag_of_each_arm():
    arms, totals = played(600, n_arms=3, noise=0.1)
    found = told(arms, totals, max_lag=6, direction="maximize")
    curves = np.zeros((3, 7))
    curves[:, :3] = [[1.0, 0.5, 0.0], [0.0, 0.5, 1.5], [0.5, 0.0, 0.0]]
    by_lag, effects = found.by_lag(), found.effects()
    np.testing.assert_allclose(by_lag.mean, curves - curves.mean(axis=0), atol=0.1)
    whole = curves.sum(axis=1)
    assert (effects.low < whole - whole.mean()).all()
    assert (whole - whole.mean() < effects.high).all()
    np.testing.assert_allclose(effects.mean, by_lag.mean.sum(axis=1), atol=1e-9)
    difference = found.difference(1, 0)
    assert difference.low < 0.5 < difference.high
    assert difference.mean == pytest.approx(-found.difference(0, 1).mean)
    assert found.best.argmax() == 1
    assert found.loss_of_settling < 0.01


@pytest.mark.parametrize(("rho", "power"), [(0.0, 1.2), (0.95, 1.4)])
def test_probabilities_of_being_best_are_raised_to_the_power_of_the_noise_found(rho, power, monkeypatch):
    arms, totals = played(300, n_arms=3, noise=0.0)
    random, disturbed = np.random.default_rng(2), 0.0
    for t in range(300):
        disturbed = rho * disturbed + 3.0 * random.standard_normal()
        totals[t] += disturbed
    found = told(arms, totals, max_lag=4, direction="maximize")
    said = found.best
    monkeypatch.setattr(model, "POWERS", (1.0, 1.0, 1.0, 1.0))
    monkeypatch.setattr(model, "FEW", 0.0)
    posterior = found.best
    assert said.sum() == pytest.approx(1.0)
    # 300 totals with weights √(s/300) count as 200.
    expected = power / (1.0 + (15.0 / 200.0) ** 2)
    measured = math.log(said[0] / said[1]) / math.log(posterior[0] / posterior[1])
    assert measured == pytest.approx(expected, rel=0.02)


def test_units_with_levels_of_their_own_learn_together():
    arms, totals = played(40, units=6, noise=0.5)
    together = told(arms, totals, max_lag=3, direction="maximize")
    alone = told(arms[:, :1], totals[:, :1], max_lag=3, direction="maximize")
    widths = [np.ptp([*model.difference(1, 0)[1:]]) for model in (together, alone)]
    assert widths[0] < 0.7 * widths[1]
    shifted = told(arms, totals + 1000.0 * np.arange(6), max_lag=3, direction="maximize")
    assert shifted.difference(1, 0).mean == pytest.approx(together.difference(1, 0).mean, abs=1e-6)


@pytest.mark.parametrize("swing", [0.0, 0.5])
def test_answers_take_a_week_into_account_if_totals_show_one(swing):
    arms, totals = played(120)
    week = swing * np.array([2.0, -1.0, 0.0, 1.0, -2.0, 1.0, -1.0])
    totals += week[np.arange(120) % 7, None]
    found = told(arms, totals, max_lag=3)
    before = found.state()
    weekly = told(arms, totals, max_lag=3, season=7)
    answers = [np.array([*model.effects()]).tolist() for model in (found, weekly)]
    assert (answers[0] == answers[1]) is (swing > 0.0)
    assert swing == 0.0 or (found.best == weekly.best).all()
    assert next(each.found for each in found.checks() if each.name == "season") is (swing > 0.0)
    assert found.state() == before
    found.tell(1, 5.0)
    weekly.tell(1, 5.0)
    assert (found.loss_of_settling == weekly.loss_of_settling) is (swing > 0.0)


def test_many_rounds_at_once_are_checked():
    model = ae.LagModel(n_arms=2, max_lag=3)
    with pytest.raises(ae.InvalidArgument, match=r"arms must be from 0 to 1, or -1 for none, but got 2"):
        model.learn([[0], [2]], [[1.0], [2.0]])
    with pytest.raises(ae.InvalidArgument, match=r"arms must be from 0 to 1, or -1 for none, but got 0\.5"):
        model.learn([[0.5], [1]], [[1.0], [2.0]])  # type: ignore[list-item]
    with pytest.raises(ae.InvalidTotal, match=r"totals must be numbers, NaN where missing, but got \[\['a'\], "):
        model.learn([[0], [1]], [["a"], [2.0]])
    with pytest.raises(ae.InvalidTotal, match=r"totals must have the shape of arms, \(3, 2\), but got shape \(2, 3\)"):
        ae.LagModel(n_arms=2, n_units=2).learn([[0, 1], [1, 0], [0, 0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(ae.InvalidTotal, match=r"totals must be an array of numbers, but got .* unequal in length"):
        model.learn([[0], [1]], [[1.0], [2.0, 3.0]])
    with pytest.raises(ae.InvalidTotal, match=r"totals must lie in \[-1e\+100, 1e\+100\], but got inf in size"):
        model.learn([[0], [1]], [[1.0], [-math.inf]])
    with pytest.raises(ae.InvalidArgument, match="columns must be 0 to learn many rounds at once, but got 2"):
        ae.LagModel(n_arms=2, columns=2).learn([[0]], [[1.0]])
    assert model.rounds == 0


def test_columns_take_out_what_is_known_of_a_round():
    arms, totals = played(80, noise=0.1)
    price = RANDOM.standard_normal(80)
    with_price = ae.LagModel(2, 3, columns=1)
    for arm, total, value in zip(arms[:, 0].tolist(), totals[:, 0].tolist(), price.tolist(), strict=True):
        with_price.tell(arm, total + 50.0 * value, columns=[value])
    without = told(arms, totals, max_lag=3)
    assert with_price.difference(1, 0).mean == pytest.approx(without.difference(1, 0).mean, abs=0.1)
    with_price.correct(3, 5.0)
    again = ae.LagModel.from_state(with_price.state())
    assert again.difference(1, 0) == with_price.difference(1, 0)


@pytest.mark.parametrize("size", [1e100, 1e-300, 0.0])
def test_columns_of_any_size_give_numbers_and_larger_ones_are_refused(size):
    found = ae.LagModel(2, 1, columns=1)
    for t in range(40):
        found.tell(t % 2, math.sin(5.0 * t), columns=[size * math.cos(3.0 * t)])
    assert np.isfinite([*found.effects().high, *found.best, found.loss_of_settling]).all()
    with pytest.raises(ae.InvalidArgument, match=r"columns must lie in \[-1e\+100, 1e\+100\], but got \[-1e\+101\]"):
        found.tell(0, 1.0, columns=[-1e101])
    assert found.rounds == 40


@pytest.mark.parametrize(("field", "given", "message"), [
    ("record", {"arms": [[2]], "totals": [[1.0]], "columns": []}, "record must be rows of arms and totals"),
    ("record", {"arms": [[0]], "totals": [[1.0]], "columns": [["a"]]}, "record must be rows of arms and totals"),
    ("settings", {"n_arms": 2, "lags": 1}, "settings must be the arguments of LagModel"),
])
def test_states_that_no_model_has_are_refused(field, given, message):
    state = {**ae.LagModel(2).state(), field: given}
    del state["digest"]
    with pytest.raises(ae.InvalidState, match=message):
        ae.LagModel.from_state(state)


@pytest.mark.parametrize("swapped", [True, False])
def test_effects_that_swap_are_noticed_and_learned_anew(swapped):
    arms, totals = played(300, noise=0.3)
    if swapped:
        later, _ = played(300, noise=0.3)
        totals[150:] = 5.0 + 0.3 * RANDOM.standard_normal((150, 1))
        curves = np.array([[0.0, 0.5, 1.5], [1.0, 0.5, 0.0]])
        for t in range(150, 300):
            for lag in range(3):
                totals[t] += curves[later[t - lag, 0], lag]
    found = told(arms, totals, max_lag=4, direction="maximize")
    changed = next(each for each in found.checks() if each.name == "changed")
    assert changed.found is swapped
    assert found.best.argmax() == (0 if swapped else 1)


def split_units(rounds, seed, common=0.0, shocks=0.0, swap=False):
    """60 units play three arms at random; effects last two weeks, the first ones are those of round 1."""
    random = np.random.default_rng(seed)
    curve = 0.5 ** (np.arange(15) / 1.5)
    arms = random.integers(3, size=(rounds, 60))
    effects = common + np.array([0.4, 0.2, 0.0]) * np.ones((rounds, 1))
    if swap:
        effects[rounds // 2 :] = effects[rounds // 2 :, ::-1]
    actions = np.take_along_axis(effects, arms, axis=1)
    arrived = np.array([np.convolve(one, curve / curve.sum())[:rounds] for one in actions.T]).T
    arrived += shocks * random.standard_normal((rounds, 1))
    return arms, arrived + 0.3 * random.standard_normal((rounds, 60))


@pytest.mark.parametrize(("world", "least", "most"), [
    ({"common": 5.0}, 0, 0),
    ({"common": 50.0}, 0, 0),
    ({"shocks": 0.3}, 0, 1),
    ({"swap": True}, 8, 8),
])  # fmt: skip
def test_what_many_units_have_in_common_is_no_change_of_effects(world, least, most):
    said = 0
    for seed in range(8):
        found = ae.LagModel(3, n_units=60, direction="maximize")
        found.learn(*split_units(90, seed, **world))
        said += next(each.found for each in found.checks() if each.name == "changed")
    assert least <= said <= most


def test_six_totals_without_noise_make_nobody_sure_of_the_worse_arm():
    wrong = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        effects, late = random.standard_normal(2), random.permutation([0, 3])
        curves = [effect * 0.5 ** np.maximum(np.arange(15) - lag, 0) * (np.arange(15) >= lag)
                  for effect, lag in zip(effects, late, strict=True)]  # fmt: skip
        arms = np.repeat(random.integers(2, size=6), random.integers(1, 4, size=6))[:6]
        totals = [sum(curves[arms[t - lag]][lag] for lag in range(t + 1)) for t in range(6)]
        found = ae.LagModel(2, direction="maximize")
        found.learn(arms[:, None], 5.0 + np.array(totals)[:, None])
        wrong += found.best[np.argmin([curve.sum() for curve in curves])] > 0.95
    assert wrong == 0


def test_an_arm_that_is_added_has_a_wide_interval_and_changes_nothing_else():
    arms, totals = played(60)
    found = told(arms, totals, max_lag=3, direction="maximize")
    before = found.difference(1, 0)
    found.add_arms()
    after, new = found.difference(1, 0), found.difference(2, 0)
    assert after.mean == pytest.approx(before.mean, abs=0.2)
    assert new.high - new.low > 5.0 * (after.high - after.low)


def test_a_pause_is_rounds_without_an_arm():
    found = ae.LagModel(2, 2, direction="maximize")
    for _ in range(20):
        for arm, total in ((0, 5.0), (0, 5.0), (None, 4.0), (None, 4.0), (1, 7.0), (1, 7.0), (None, 4.0)):
            found.tell(arm, total)
    assert found.difference(1, 0).mean == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize("totals", [[3.0] * 30, [0.0] * 30, [1e100] * 30, [1e100, -1e100] * 15, [1e-300] * 30])
def test_constant_and_huge_totals_give_numbers(totals):
    found = ae.LagModel(3, direction="maximize")
    for t, total in enumerate(totals):
        found.tell(t % 2, total)
    effects = found.effects()
    assert np.isfinite([*effects.mean, *effects.low, *effects.high, *found.best, found.loss_of_settling]).all()
    assert found.best.sum() == pytest.approx(1.0)
    if len(set(totals)) == 1:
        assert found.best == pytest.approx(1.0 / 3.0, abs=0.15)


@pytest.mark.parametrize("totals", [[], [5.0], [None] * 30, [None] * 29 + [5.0]])
def test_one_total_sets_the_level_and_says_nothing_of_arms(totals):
    found = ae.LagModel(4)
    for t, total in enumerate(totals):
        found.tell(t % 4, total)
    assert found.best == pytest.approx(0.25, abs=0.05)
    effects, difference = found.effects(), found.difference(1, 0)
    assert [set(each.tolist()) for each in effects] == [{0.0}, {-1e100}, {1e100}]
    assert (difference, found.loss_of_settling) == ((0.0, -1e100, 1e100), 1e100)
    assert not any(each.found for each in found.checks())
    assert found.to_frame()["high"].tolist() == [1e100] * 4


def test_a_longest_lag_of_ten_thousand_rounds_finds_effects_of_the_first_ones():
    arms, totals = played(120, noise=0.1)
    short, long = [told(arms, totals, max_lag=lag, direction="maximize").difference(1, 0) for lag in (14, 10_000)]
    assert short.low < 0.5 < short.high
    assert long.low < 0.5 < long.high
    assert math.isfinite(long.low + long.high)


@pytest.mark.parametrize("settings", [
    {"n_arms": 40},
    {"n_arms": 3, "max_lag": 0},
    {"n_arms": 3, "season": 200},
    {"n_arms": 3, "n_units": 3},
])  # fmt: skip
def test_more_coefficients_than_totals_make_wide_intervals(settings):
    found = ae.LagModel(**settings)
    units = found.n_units
    for t in range(12):
        heard = [math.sin(5.0 * t), *[None] * (units - 1)]
        found.tell([t % 2] * units, heard)
    never = found.difference(2, 0)
    assert never.low < -0.5 < 0.5 < never.high
    assert np.isfinite([*found.effects().high, *found.best, found.loss_of_settling]).all()
    assert found.best.max() < 0.95


test_settings_are_refused_by_name = refuses([
    ({"n_arms": 1}, "n_arms must be at least 2, but got 1"),
    ({"n_arms": 2, "season": 1}, "season must be at least 2, but got 1"),
    ({"n_arms": 1000}, "n_arms must leave at most 400 coefficients"),
], lambda settings: ae.LagModel(**settings))


@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m.tell(2, 1.0), "arm must be at most 1, but got 2"),
    (lambda m: m.tell(0, math.nan), "total must be a finite number, but got nan; a missing total is None"),
    (lambda m: m.tell(0, 1e300), "total must be at most 1e\\+100, but got 1e\\+300"),
    (lambda m: m.tell([0, 1], [1.0, 2.0]), "arms must be 1, one per unit"),
    (lambda m: m.correct(3, 1.0), "round must be at most 2, but got 3"),
    (lambda m: m.tell(0, 1.0, columns=[1.0]), "columns must have shape"),
    (lambda m: m.tell(0, 1.0, columns=np.ones(2)), r"columns must have shape \(0,\), but got shape \(2,\)"),
])  # fmt: skip
def test_reports_are_refused_by_name_and_change_nothing(call, message):
    found = ae.LagModel(2, 2)
    found.tell(0, 1.0)
    found.tell(1, 2.0)
    before = found.state()
    with pytest.raises(ae.InvalidArgument, match=message):
        call(found)
    assert found.state() == before


def test_the_answers_as_text_table_and_picture():
    plt = pytest.importorskip("matplotlib.pyplot")
    arms, totals = played(200, n_arms=3, noise=0.1)
    found = told(arms, totals, max_lag=4, direction="maximize")
    effects = found.effects()
    frame = found.to_frame()
    assert list(frame.columns) == ["arm", "mean", "low", "high", "best"]
    np.testing.assert_array_equal(frame["mean"], effects.mean)
    text = repr(found)
    assert text.startswith("LagModel(rounds: 200, relative to the mean of the arms: arm 0: ")
    assert "best with probability 100%" in text
    assert "<table" in found._repr_html_()
    ax = found.plot(names=["Letter", "Email", "Call"])
    assert [label.get_text().split(" (")[0] for label in ax.get_yticklabels()] == ["Letter", "Email", "Call"]
    assert len(ax.lines) == 2 * 3 + 1
    plt.close(ax.figure)
