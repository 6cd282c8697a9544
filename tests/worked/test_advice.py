"""A player that follows an adviser: its steps against plain Python, engines, saved states, units, and bad advisers."""

import itertools
import json
import math
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import tell_all
from tests.theory.adaptive_reference import distribution
from tests.theory.enumeration import random_components
from tests.theory.test_advice import Advice, added, potential

import aftereffect as ae
from aftereffect.bandits import advice as steps
from aftereffect.core import kernel
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coins import DrawnCoins, GivenCoins

TINY = 1e-9


def losses(K: int, d: int, T: int, **more: Any) -> ae.Losses:
    return ae.spreads.random_split(
        ae.tables.iid(T, means=np.linspace(0.3, 0.7, K), seed=1), max_delay=d, seed=2, **more
    )


def play(player: Any, rounds: int, seed: int = 5) -> list[int]:
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(rounds):
        arms.append(player.ask())
        player.tell(float(rng.random()))
    return arms


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_steps_are_those_of_the_page(K: int, drift: float) -> None:
    """L̂, A, Z, the mass moved and Π, after every step, against bisection in plain Python."""
    rng = np.random.default_rng(K)
    bandit: Any = ae.MatchedTsallis(K)
    memory = np.zeros(steps.memory_size(K))
    first, share, floor = 1.5, 0.5, 0.02
    budget = steps.Budget(first, share, drift, floor)
    known, h = Advice((0.0,) * K), 2.0 * (math.sqrt(K) - 1.0)
    cut = 0
    for _ in range(120):
        bandit.update(int(rng.choice(K, p=bandit.probabilities)), float(rng.random()))
        own = tuple((bandit.estimated_losses - memory[:K]).tolist())
        rate, p = bandit.learning_rate, rng.dirichlet(np.full(K, 0.4))
        memory[3 * K : 4 * K] = 7.0 * p
        bandit.run(steps.follow, memory, budget)
        # Times what the learner would play alone, up to a floor.
        alone = np.array(distribution(own, rate))
        p = p * alone / (p * alone).sum()
        p = np.maximum(p, np.minimum(floor, alone))
        p /= p.sum()
        assert memory[4 * K : 5 * K] == pytest.approx(p, rel=1e-6)
        limit = first + share * (h * bandit.first_rate + bandit.cost + bandit.penalty)
        known = known.towards(own, rate, p.tolist(), limit, drift)
        numbers = memory[5 * K :]
        spread = np.array(known.A) - min(known.A)
        assert memory[:K] == pytest.approx(spread, abs=1e-3 * max(1.0, spread.max()))
        # From the same A on, so that what bisection leaves open does not add up.
        known = Advice(tuple(memory[:K].tolist()), float(numbers[steps.SHIFT]), float(numbers[steps.MOVED]))
        assert known.price() + drift * known.moved <= limit + TINY
        assert steps.price(K, memory) == known.price()
        q = np.array(bandit.probabilities)
        whole = added(own, known.A)
        assert q == pytest.approx(np.array(distribution(whole, rate)), rel=1e-6)
        cut += numbers[steps.TAKEN] < 1.0
        if numbers[steps.TAKEN] == 1.0:
            assert q == pytest.approx(p, rel=1e-6)
    assert 0 < cut < 120
    twin: Any = ae.restore(bandit.state())
    expected = potential(whole, rate) - potential(own, rate) - known.Z
    assert twin.run(steps.withdrawn, memory) == pytest.approx(expected, abs=1e-7)


class Wild(ae.advisers.Adviser):
    """Advises at random."""

    def __init__(self, seed: int, n_arms: int) -> None:
        self.rng, self.n_arms = np.random.default_rng(seed), n_arms

    def advise(self) -> Any:
        return None if self.rng.random() < 0.1 else self.rng.dirichlet(np.full(self.n_arms, 0.2)) + 1e-9


class Observed(AdvisedWrapper):
    """Keeps L̂ before and after corrections are inserted."""

    __slots__ = ("inserted",)

    @property
    def own(self) -> Any:
        bandit: Any = self.bandit
        return np.array(bandit.estimated_losses) - self._memory[: self.n_arms]

    def _insert(self) -> None:
        before = self.own
        super()._insert()
        self.inserted = before, self.own


@pytest.mark.parametrize("seed", range(8))
def test_the_inequality_of_every_run_holds_for_the_player_with_prior_and_corrections(seed: int) -> None:
    """Σ⟨ẑ, q − e_u⟩ of the corrected estimates, each at the distribution of its own block, against the certificate."""
    rng = np.random.default_rng(seed)
    K, d, h = 2 + seed % 3, seed % 2, 2.0 * (math.sqrt(2 + seed % 3) - 1.0)
    base = ae.MatchedTsallis(K, first_rate=0.3, prior=None if seed % 2 else (2.0 * rng.random(K)).tolist())
    given: dict[str, Any] = {"max_delay": d, "coins": 0.7 / (d + 1), "budget": ((0.0, 0.5, 8.0)[seed % 3], 0.5)}
    player: Any = Observed(base, adviser=Wild(seed, K), floor=0.0, seed=seed, **given)
    player.ask()
    gap, totals, inserted, least = -player.own, list[float](), 0, math.inf
    block: Any = None
    for _ in range(400):
        arm = player.ask()
        if player.block_start == len(totals) + 1:
            q = np.array(player.probabilities)
        before, player.inserted = player.own, None
        totals.append(float(rng.random()))
        if player.tell(totals[-1]).update:
            after, last = (player.own, None) if player.inserted is None else player.inserted
            gap = gap + (after - before) @ q - (after - before)
            if last is not None:
                gap = gap + (last - after) @ block[-1] - (last - after)
                inserted += 1
            bandit = player.bandit
            run = h * bandit.first_rate + bandit.cost + bandit.penalty + bandit.prior_price
            least = min(least, run + (player.corrections or 0.0) + player.advice_prices[0] - gap.max())
            fed = player.coins.gap - d
            block = arm, float(q[arm]), fed, sum(totals[-fed:]), q
        elif block is not None and rng.random() < 0.2:
            a, chance, fed, was, at = block
            now = float(np.clip(was + rng.normal(), 0.0, fed))
            player.correct(arm=a, probability=chance, measured=fed, was=was, now=now)
            block = a, chance, fed, now, at
    assert inserted > 5
    assert -TINY <= least < 5.0


class Drawn(Exception):
    """An arm beyond those that are given is to be drawn."""


class Scripted(DrawnCoins):
    """Coins of a bias, given in advance for the rounds after an opening."""

    __slots__ = ("sequence",)

    def __init__(self, bias: float, quiet: int, opening: int, coins: Any) -> None:
        super().__init__(bias, quiet, np.zeros(4, np.uint64))
        self.sequence = GivenCoins([*[0] * (opening - 1), *[1] * (opening > 0), *coins], quiet)
        for t in range(1, opening + 1):
            self.sequence.read(t)

    def read(self, t: int) -> bool:
        return self.sequence.read(t)

    gap = property(lambda self: self.sequence.gap)

    def since(self, t: int) -> int:
        return self.sequence.since(t)


class Heard(ae.advisers.Adviser):
    """Advises wildly by all that the units report; plays arm 1 in openings."""

    plays_opening = True

    def play(self, stream: Any) -> Any:
        return [1] * self.setting.n_units

    def begin(self, setting: Any) -> None:
        self.setting, self.x = setting, 0.0

    def hear(self, arms: Any, totals: Any) -> None:
        for arm, total in zip(arms, totals, strict=True):
            self.x = math.sin(100.0 * self.x + 37.0 * total + arm + 1.0)

    def advise(self) -> Any:
        p = 0.5 + 0.49 * math.sin(37.0 * self.x)
        return None if self.x > 0.8 else (p, 1.0 - p)


@pytest.mark.parametrize("opening", [0, 1])
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 4, 0.5), (1, 5, 0.4)])
def test_panels_over_all_coins_and_arms(
    d: int, T: int, beta: float, opening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(9) of adaptive.md for two units with losses of their own, and the mean certificate above the mean regret."""
    parts = np.array([random_components(np.random.default_rng(u), T, d, 2) for u in range(2)])
    parts[..., 0] *= 0.3
    # rho[u, t, i]: the total if arm i was played throughout.
    rho = sum(np.pad(parts[:, : T - s, s], ((0, 0), (s, 0), (0, 0))) for s in range(d + 1))
    chance = certified = 0.0
    regret, stale, fresh = np.zeros((3, 2))

    def explore(coins: Any, arms: list[int]) -> None:
        nonlocal chance, certified, regret, stale, fresh
        left, here = list(arms), math.prod(beta if coin else 1.0 - beta for coin in coins)

        def draw(bandit: Any, stream: Any) -> int:
            nonlocal here
            if not left:
                raise Drawn
            here *= bandit.probabilities[left[0]]
            return left.pop(0)

        monkeypatch.setattr("aftereffect.players.wrapper.wrapper.draw_arm", draw)
        given: dict[str, Any] = {"max_delay": d, "coins": beta, "budget": (0.5, 0.5), "opening": opening}
        panel = ae.Panel(AdvisedWrapper(ae.MatchedTsallis(2), adviser=Heard(), seed=1, **given), n_units=2)
        panel.player.coins = Scripted(beta, d, opening, coins)
        played: list[list[int]] = []
        try:
            for t in range(T):
                played.append(panel.ask())
                panel.tell([sum(parts[u, t - s, s, played[t - s][u]] for s in range(min(t, d) + 1)) for u in range(2)])
        except Drawn:
            for arm in range(2):
                explore(coins, [*arms, arm])
            return
        chance += here
        certified += here * panel.certificate().value
        flips = [0] * opening + list(coins)
        for t in range(T):
            for u in range(2):
                whole = sum(parts[u, t - s, s, played[t - s][u]] for s in range(min(t, d) + 1))
                regret += here * (whole - rho[u, t])
                if t >= opening + d:
                    stale += here * (1.0 - beta) ** d * (rho[u, t, played[t - d][u]] - rho[u, t])
                    fresh += here * (not any(flips[t - d : t])) * (rho[u, t, played[t][u]] - rho[u, t])

    for coins in itertools.product((0, 1), repeat=T - opening):
        explore(coins, [])
    assert chance == pytest.approx(1.0)
    assert stale == pytest.approx(fresh, abs=TINY)
    assert regret.max() <= certified + TINY


def advisers(K: int) -> dict[str, Any]:
    return {
        "right": ae.advisers.Opinion(np.eye(K)[0]),
        "wrong": ae.advisers.Opinion(np.eye(K)[K - 1]),
        "ucb": ae.advisers.Learner(ae.UCB1(K)),
        "learner": ae.advisers.Learner(ae.MatchedTsallis(K)),
        "lags": ae.advisers.Lags(),
    }


@pytest.mark.parametrize("which", ["wrong", "ucb", "lags"])
@pytest.mark.parametrize(("K", "d"), [(2, 0), (3, 2)])
def test_rounds_equals_loop(which: str, K: int, d: int) -> None:
    player = ae.default_player(n_arms=K, max_delay=d, adviser=advisers(K)[which], seed=3)
    loop, rounds = (ae.simulate(player, losses(K, d, 600), runs=2, seed=4, engine=e) for e in ("loop", "auto"))
    assert rounds.engine == "rounds"
    np.testing.assert_array_equal(loop.regrets, rounds.regrets)
    np.testing.assert_array_equal(loop.updates, rounds.updates)


def test_no_adviser_is_the_player_of_before() -> None:
    plain = ae.default_player(n_arms=3, max_delay=2, seed=3)
    assert type(plain) is ae.CoinCleanWrapper
    assert type(ae.default_player(n_arms=3, max_delay=2, adviser=None, seed=3)) is ae.CoinCleanWrapper
    with pytest.raises(ae.InvalidArgument, match="adviser must be"):
        ae.default_player(n_arms=3, max_delay=2, adviser=object())


def test_right_advice_helps_and_wrong_advice_is_given_up() -> None:
    world, means = losses(3, 2, 6000), {}
    for name, adviser in {"none": None, **advisers(3)}.items():
        player = ae.default_player(n_arms=3, max_delay=2, adviser=adviser)
        sim = ae.simulate(player, world, runs=60, seed=5, checkpoints=2)
        means[name] = sim.curve.mean
    assert means["right"][1] < 0.8 * means["none"][1]
    # Following the worst arm costs 0.4 a round; after the budget is spent, hardly anything.
    assert 100.0 < means["wrong"][0] < 0.25 * 0.4 * 3000
    assert means["wrong"][1] - means["wrong"][0] < 60.0


class Bad(ae.advisers.Adviser):
    """Raises, or advises nonsense."""

    def __init__(self, advice: Any) -> None:
        self.says = advice

    def advise(self) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Unspeakable(Exception):
    """An error that has no words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(("says", "why"), [
    (ValueError("no data"), "ValueError: no data"),
    (Unspeakable(), "Unspeakable"),
    ([0.5, math.nan, 0.5], "must be finite"),
    ([0.5, -0.1, 0.6], "nonnegative"),
    ([0.0, 0.0, 0.0], "not all 0"),
    ([0.5, 0.5], "shape"),
    ("arm 2", "array of numbers"),
])
def test_bad_advice_is_counted_and_ignored(says: Any, why: str) -> None:
    alone = ae.default_player(n_arms=3, max_delay=1, seed=8)
    advised: Any = ae.default_player(n_arms=3, max_delay=1, adviser=Bad(says), seed=8)
    assert play(alone, 300) == play(advised, 300)
    np.testing.assert_array_equal(alone.probabilities, advised.probabilities)
    assert advised.advice.failed == advised.bandit.updates + 1
    assert why in advised.advice.error
    assert "was ignored" in str(advised.advice)
    assert advised.certificate().terms["advice"] == pytest.approx(0.0, abs=TINY)
    again: Any = ae.restore(advised.state(), adviser=Bad(says))
    assert again.advice.failed == advised.advice.failed
    assert str(again.advice).endswith("times and was ignored.")


def test_no_advice_and_advice_that_knows_nothing_change_nothing() -> None:
    alone = play(ae.default_player(n_arms=3, max_delay=1, seed=8), 200)
    equal: Any = ae.default_player(n_arms=3, max_delay=1, adviser=ae.advisers.Opinion([1, 1, 1]), seed=8)
    assert alone == play(equal, 200)
    assert equal.advice.spent == pytest.approx(0.0, abs=1e-6)
    advised: Any = ae.default_player(n_arms=3, max_delay=1, adviser=Bad(None), seed=8)
    assert alone == play(advised, 200)
    assert advised.advice.silent == advised.bandit.updates + 1
    assert "no advice yet" in str(advised.advice)


class Counter(ae.advisers.Adviser):
    """Advises the arm heard least, and remembers what it heard."""

    def begin(self, setting: Any) -> None:
        self.setting, self.heard, self.corrected = setting, [0] * setting.n_arms, []

    def hear(self, arms: Any, totals: Any) -> None:
        for arm, total in zip(arms, totals, strict=True):
            self.heard[arm] += total is not None

    def correct(self, round: int, total: float | None, unit: int = 0) -> None:
        self.corrected.append((round, total, unit))

    def advise(self) -> Any:
        return [1.0 / (1.0 + n) for n in self.heard]

    def state(self) -> Any:
        return self.heard

    def resume(self, state: Any) -> None:
        self.heard = list(state)


@pytest.mark.parametrize("adviser", [Counter(), ae.advisers.Opinion([3, 1, 1]), ae.advisers.Lags(season=7)])
@pytest.mark.parametrize("n_units", [1, 3])
def test_restored_players_go_on_bit_for_bit(adviser: Any, n_units: int) -> None:
    own = adviser if isinstance(adviser, Counter) else None
    panel = ae.Panel(ae.default_player(n_arms=3, max_delay=1, adviser=adviser, seed=8), n_units=n_units)
    rng = np.random.default_rng(1)
    for t in range(150):
        arms, totals = panel.ask(), rng.random(n_units).tolist()
        if t in (0, 40, 97):
            again = None if own is None else Counter()
            panel = ae.restore(json.loads(json.dumps(panel.state())), adviser=again)
            assert panel.ask() == arms
        panel.tell(totals)
    assert panel.state() == ae.restore(panel.state(), adviser=None if own is None else Counter()).state()
    if own is not None:
        with pytest.raises(ae.InvalidState, match="adviser must be given"):
            ae.restore(panel.state())
        assert sum(panel.player.adviser.heard) == 150 * n_units


def test_a_panel_of_one_is_the_player_alone() -> None:
    adviser = ae.advisers.Opinion([1, 5, 1])
    alone: Any = ae.default_player(n_arms=3, max_delay=2, adviser=adviser, seed=8)
    panel = ae.Panel(ae.default_player(n_arms=3, max_delay=2, adviser=adviser, seed=8), n_units=1)
    rng = np.random.default_rng(1)
    for total in rng.random(200).tolist():
        assert [alone.ask()] == panel.ask()
        alone.tell(total)
        panel.tell([total])
    assert alone.advice._replace(slowest=0.0) == panel.player.advice._replace(slowest=0.0)
    assert alone.certificate() == panel.certificate()


def test_the_slowest_call_is_not_one_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = iter([2.0, 0.01, 0.03, 0.02, *[0.0] * 100])
    monkeypatch.setattr(Counter, "hear", lambda *_: time.sleep(next(slow) / 10.0))
    player: Any = ae.default_player(n_arms=2, max_delay=1, adviser=Counter(), seed=8)
    tell_all(player, [0.5] * 4)
    assert 0.003 <= player.advice.slowest < 0.1


def test_missing_void_and_amended_totals_are_heard_as_they_are_used() -> None:
    adviser = Counter()
    player: Any = ae.default_player(n_arms=2, max_delay=1, adviser=adviser, out_of_range="void", seed=8)
    tell_all(player, (0.5, None, 7.0, 0.25))
    assert sum(adviser.heard) == 2
    assert adviser.setting == (2, 1, 1, "minimize", 0.0, 1.0)
    player.ask()
    while player.tell(0.5).update:
        player.ask()
    player.amend(player.block_start, 0.75)
    assert adviser.corrected == [(player.block_start, 0.75, 0)]


def test_certificates_hold_the_price() -> None:
    player: Any = ae.default_player(n_arms=3, max_delay=2, adviser=ae.advisers.Opinion([0, 0, 1]), seed=3)
    stream = losses(3, 2, 500).stream()
    for _ in range(500):
        player.tell(stream.play(player.ask()))
    certificate, told = player.certificate(), player.advice
    assert certificate.terms["advice"] == pytest.approx(told.price)
    assert told.price <= told.spent <= told.budget + TINY
    rest = sum(certificate.terms.values()) - certificate.terms["advice"]
    _, most = player.advice_prices
    stop = ae.theory.stopping_price(2, player.update_probability, player.open_rounds)
    # Theorem 4 with the greatest price: ends + open stretch are replaced by d and the price of stopping.
    gone = certificate.terms["ends"] + certificate.terms["open stretch"]
    assert certificate.any_time == pytest.approx(rest - gone + 2.0 + stop + player.factor * most)
    plain = ae.default_player(n_arms=3, max_delay=2)
    d, F = 2, player.factor
    moved = ae.theory.stretch_worst_case(3, 2, 10**5, 1 / 3, 0.3) - plain.factor * ae.theory.adaptive_regret_bound(
        3, (2 / 3) ** 2 * (1.0 + (10**5 - d - 1) / 3), 0.3
    )
    base = plain.worst_case(10**5) - moved
    assert player.worst_case(10**5) == pytest.approx(moved + 1.5 * base + 8.0 * F)


def test_the_lag_adviser_says_what_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears every round, and proposes the squared probabilities of the posterior at the latest judgement."""
    monkeypatch.setattr("aftereffect.lags.model.POWERS", (1.0,) * 4)
    monkeypatch.setattr("aftereffect.lags.model.FEW", 0.0)
    player: Any = ae.default_player(3, max_delay=2, direction="maximize", adviser="lags", seed=4)
    model = ae.LagModel(3, max_lag=14, direction="maximize")
    world = ae.spreads.random_split(
        ae.tables.iid(300, means=[0.3, 0.4, 0.7], seed=1), max_delay=2, seed=2, direction="maximize"
    )
    stream, judged, again, advised = world.stream(), None, 5.0, 0
    for t in range(1, 301):
        arm = player.ask()
        total = stream.play(arm)
        update = player.tell(total).update
        model.tell(arm, total)
        update = update or t == player.opening
        if update and t >= again:
            judged, again = model.best**2, 1.02 * t
        if update and judged is not None:
            assert player.advice.advised == pytest.approx(judged / judged.sum())
            advised += 1
    assert advised > 20
    assert player.advice.advised[2] > 0.95


class Opener(Counter):
    """Plays openings: arm 1, or what it is told to return."""

    plays_opening = True

    def __init__(self, says: Any = "usual") -> None:
        self.says = says

    def play(self, stream: Any) -> Any:
        return [1] * self.setting.n_units if self.says == "usual" else self.says


def test_an_opening_is_played_by_the_adviser_and_learned_from_by_it_alone() -> None:
    adviser = Opener()
    player: Any = ae.default_player(n_arms=3, max_delay=2, adviser=adviser, seed=8)
    n0 = math.ceil(8.0 * player.factor)
    assert player.opening == player.advice.opening == n0
    assert player.worst_case(n0) == n0
    plain = AdvisedWrapper(ae.MatchedTsallis(3), max_delay=2, adviser=Bad(None), seed=8)
    assert plain.opening == 0
    assert player.worst_case(n0 + 5000) == pytest.approx(n0 + plain.worst_case(5000))
    rng = np.random.default_rng(1)
    for t in range(1, n0 + 1):
        assert player.ask() == 1
        played = player.tell(None if t == 4 else float(rng.random()))
        assert (played.draw, played.update) == (True, False)
    assert adviser.heard == [0, n0 - 1, 0]
    assert player.bandit.updates == 0
    player.amend(3, 0.5)
    assert adviser.corrected == [(3, 0.5, 0)]
    certificate = player.certificate()
    assert certificate.terms["opening"] == n0
    assert certificate.terms["ends"] == 0.0
    assert "opening" in str(certificate)
    # From here on it is the player without an opening, whose coins and arms come from the same streams.
    assert player.advice.given == 1
    blocks = []
    for _ in range(200):
        player.ask(), plain.ask()
        blocks.append(player.tell(0.5).update)
        assert plain.tell(0.5).update == blocks[-1]
        assert player.block_start - n0 == plain.block_start
    assert sum(blocks) > 5
    assert player.certificate().terms["ends"] == 2.0
    player.amend(3, 0.25)
    assert adviser.corrected[-1] == (3, 0.25, 0)
    with pytest.raises(ae.OutOfTurn, match="has been closed"):
        player.amend(n0 + 1, 0.5)


class Failing(Opener):
    """Opener that raises an error in one of its methods, after it has spoilt what it was given."""

    def __init__(self, method: str) -> None:
        super().__init__(None)
        self.method, self.calls = method, 0

    def fail(self, method: str, *given: Any) -> None:
        if method == self.method:
            self.calls += 1
            for each in given:
                each.clear()
            raise RuntimeError(f"no {method}")

    def hear(self, arms: Any, totals: Any) -> None:
        self.fail("hear", arms, totals)

    def correct(self, round: int, total: float | None, unit: int = 0) -> None:
        self.fail("correct")

    def advise(self) -> Any:
        self.fail("advise")

    def play(self, stream: Any) -> Any:
        self.fail("play")

    def state(self) -> Any:
        self.fail("state")
        return {"numbers": np.zeros(2)} if self.method == "odd state" else [1.0]

    def resume(self, state: Any) -> None:
        self.fail("resume")
        assert state == [1.0]


@pytest.mark.parametrize("method", ["hear", "correct", "advise", "play", "state", "odd state"])
@pytest.mark.parametrize("n_units", [1, 2])
def test_a_failing_adviser_changes_nothing(method: str, n_units: int) -> None:
    """Against the same adviser that never fails: arms, probabilities, certificate; restored players too."""

    def made(method: str) -> Any:
        player = AdvisedWrapper(ae.MatchedTsallis(3), max_delay=1, adviser=Failing(method), opening=20, seed=8)
        return ae.Panel(player, n_units=n_units)

    fine, failing, rng, failures = made("nothing"), made(method), np.random.default_rng(1), 0
    for t in range(1, 121):
        assert fine.ask() == failing.ask()
        totals = rng.random(n_units).tolist()
        assert fine.tell(totals) == failing.tell(totals)
        if t == 10:
            for panel in (fine, failing):
                panel.amend(t, 0.25, n_units - 1)
        if t in (15, 80):
            failures += failing.player.adviser.calls + (method == "odd state")
            fine, failing = (
                ae.restore(json.loads(json.dumps(panel.state())), adviser=Failing(own))
                for panel, own in ((fine, "nothing"), (failing, method))
            )
            failures += method == "state"
    np.testing.assert_array_equal(fine.player.probabilities, failing.player.probabilities)
    assert fine.certificate() == failing.certificate()
    failures += failing.player.adviser.calls
    assert failing.player.advice.failed == failures > 0
    assert fine.player.advice.failed == 0
    if method not in ("state", "odd state", "correct", "play"):
        assert f"RuntimeError: no {method}" in str(failing.player.advice)


def test_an_adviser_that_cannot_resume_is_refused() -> None:
    player = ae.default_player(n_arms=2, max_delay=0, adviser=Failing("nothing"), seed=8)
    with pytest.raises(ae.InvalidState, match=r"adviser must resume from the state .* RuntimeError: no resume"):
        ae.restore(player.state(), adviser=Failing("resume"))


class OffParams(NamedTuple):
    """No parameters; the type identifies the adviser."""


def off_size(params: OffParams, n_arms: int) -> int:
    return 0


def off_begin(params: OffParams, n_arms: int, state: Any) -> None:
    pass


def off_hear(params: OffParams, n_arms: int, state: Any, unit: int, arm: int, total: float) -> None:
    pass


def off_advise(params: OffParams, n_arms: int, state: Any, p: Any) -> int:
    for i in range(n_arms):
        p[i] = -1.0
    return 1


def off_play(params: OffParams, n_arms: int, state: Any, rng: Any) -> int:
    return n_arms


kernel.register(OffParams, kernel.AdviserKernel(off_size, off_begin, off_hear, off_advise, off_play))


class Off(ae.advisers.KernelAdviser):
    """In kernel form, it advises negative numbers and plays arms that there are not."""

    plays_opening = True

    def form(self, setting: Any) -> Any:
        return OffParams()


def test_a_kernel_that_fails_changes_nothing_in_any_engine() -> None:
    def player(adviser: Any) -> Any:
        return AdvisedWrapper(ae.MatchedTsallis(3), max_delay=1, adviser=adviser, opening=40, seed=3)

    world = losses(3, 1, 300)
    loop, rounds = (ae.simulate(player(Off()), world, runs=2, seed=4, engine=e) for e in ("loop", "rounds"))
    silent = ae.simulate(player(Failing("nothing")), world, runs=2, seed=4)
    np.testing.assert_array_equal(loop.regrets, rounds.regrets)
    np.testing.assert_array_equal(loop.regrets, silent.regrets)
    one = player(Off())
    play(one, 100)
    assert one.advice.failed == 40 + one.bandit.updates + 1


@pytest.mark.parametrize(("says", "why"), [([3], "arm must be at most 2"), ([0, 1], "one per unit"), (None, "")])
def test_if_an_opening_fails_all_arms_are_equally_likely(says: Any, why: str) -> None:
    player: Any = AdvisedWrapper(ae.MatchedTsallis(3), max_delay=1, adviser=Opener(says), opening=300, seed=8)
    arms = np.bincount(play(player, 300), minlength=3)
    assert arms.min() > 70
    assert player.advice.failed == (300 if why else 0)
    assert why in player.advice.error


def test_the_model_finds_the_best_arm_in_the_opening() -> None:
    """A panel too; in words; and only where there is a guarantee and no prior."""
    world = ae.spreads.random_split(ae.tables.iid(100, means=[0.2, 0.8], seed=1), max_delay=2, seed=2)
    player: Any = ae.default_player(2, max_delay=2, adviser="lags", seed=4)
    panel = ae.Panel(ae.default_player(2, max_delay=2, adviser="lags", seed=4), n_units=3)
    stream, streams, arms, units = world.stream(), [world.stream() for _ in range(3)], [], []
    for _ in range(90):
        arms.append(player.ask())
        player.tell(stream.play(arms[-1]))
        units.append(panel.ask())
        panel.tell([one.play(arm) for one, arm in zip(streams, units[-1], strict=True)])
    assert np.mean(arms[45:]) < 0.1
    assert np.mean(units[45:]) < 0.1
    assert f"chooses the arms of {player.opening - 90} more rounds itself" in str(player.advice)
    assert player.certificate().terms["advice"] == panel.certificate().terms["advice"] == 0.0
    given: dict[str, Any] = {"max_delay": 2, "adviser": "lags"}
    assert AdvisedWrapper(ae.MatchedTsallis(2), coins=[0, 1] * 50, **given).opening == 0
    warm: Any = ae.default_player(2, prior=ae.Prior([0.2, 0.4], updates=5), **given)
    assert warm.opening == 0


def test_an_advised_player_is_not_watched() -> None:
    player: Any = ae.default_player(n_arms=2, max_delay=0, adviser=Counter(), seed=8)
    play(player, 5)
    with pytest.raises(ae.InvalidArgument, match="must not be advised to be watched"):
        ae.carryover.watch(player, [])


test_bad_arguments_are_refused = refuses([
    ({"budget": 3.0}, "budget must have shape"),
    ({"budget": (1.0, -0.5)}, r"budget\[1\] must be at least 0"),
    ({"budget": (1e308, 0.5)}, r"budget\[0\] must be at most 1e\+100, but got 1e\+308"),
    ({"floor": 2.0}, "floor must be at most 1"),
    ({"adviser": Opener}, r"adviser must be an object, not a class \(call it first\), but got <class"),
    ({"adviser": Opener(), "opening": 10**30}, "opening must be at most 9007199254740992, but got 1000"),
    ({"opening": 5}, "opening must be 0, unless .* but got 5"),
    ({"adviser": Opener(), "opening": 5, "coins": [0, 1]}, "opening must be 0, unless .* but got 5"),
    ({"adviser": ae.advisers.Opinion([0.5, 0.5])}, "probabilities must have shape"),
    ({"adviser": ae.advisers.Learner(ae.UCB1(2))}, "n_arms = 3"),
], lambda more: AdvisedWrapper(ae.MatchedTsallis(3), max_delay=1, **{"adviser": Counter(), **more}))

def test_an_adviser_that_has_learned_is_refused() -> None:
    # Compiled engines start the bandit of a Learner anew, and would play otherwise than the loop.
    bandit = ae.Exp3(3, learning_rate=0.5)
    adviser = ae.advisers.Learner(bandit)
    bandit.update(0, 1.0)
    with pytest.raises(ae.InvalidArgument, match="bandit must be unplayed to advise from round 1 on, but Exp3"):
        ae.default_player(3, max_delay=1, adviser=adviser)


test_bad_opinions_are_refused = refuses(
    [
        (bad, r"probabilities must be nonnegative, not all 0, and at most 1e\+100, but got")
        for bad in ([0.0, 0.0, 0.0], [1.0, -0.5, 1.0], [1e308] * 3, [])
    ],
    ae.advisers.Opinion,
)
