"""The planner: what to expect of your settings, simulated before the first round.

`plan` plays a player, A/B tests of several lengths and an equal split on worlds like yours (`losses.year`), and says
which one to take, what it is expected to bring, and how many rounds or units would make the player worth while.

    gain over an equal split, in the units of the totals, summed over rounds and units
    equal split      0            every arm equally often
    A/B test         `test`       all arms for some rounds, then the winner for good: by means, or by the lag model
    player           `player`     such as `LagPlayer`
    best arm         `most`       what would be gained by knowing the best arm from the start
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.text import amount, counted
from aftereffect.engines.loop import unit_losses
from aftereffect.engines.simulation import simulate, standard_error
from aftereffect.losses.protocol import Losses
from aftereffect.losses.year import year
from aftereffect.players.default import default_player
from aftereffect.players.lag_player import LagPlayer
from aftereffect.players.rivals.ab_test import ABTest
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

GAP = 0.2
"""By how much the best arm is ahead in the worlds that are simulated; results are scaled to the gap that is given."""
MOST_WORLDS, FEWEST = 24, 8
"""How many worlds are simulated, fewer if they are large."""
JUDGED = 4
"""In so many times as many other worlds the best A/B test is judged: now and then it names a wrong winner, for good."""
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""The lengths of A/B tests, as shares of the rounds."""
HOLD = 3
"""For how many rounds an arm is held in a test whose winner the lag model names."""
WORTH = 0.5
"""A player is worth while if it brings this share of what knowing the best arm would, and not less than an A/B test."""
LONGEST, LARGEST, MOST_ARMS = 10_000, 60_000, 50
"""The most rounds, rounds × units, and arms that are simulated."""
MOST_GAP, MOST_NOISE = 1e100, 1e90
"""The largest gap, and the largest noise in units of the gap: beyond, sums of gains overflow."""
DOUBLINGS, EFFORT = 3, 100_000
"""How far rounds and units are doubled to find out when a player is worth while; the effort of all worlds together."""


class Setting(NamedTuple):
    """What is simulated; see `plan`."""

    n_arms: int
    rounds: int
    n_units: int
    max_delay: int
    half_life: float
    gap: float
    noise: float

    @property
    def effort(self) -> int:
        """How long a world takes: with one unit a round of the lag model takes sixteen times as long as with others."""
        return self.rounds * (16 + self.n_units) * (4 + self.n_arms) // 8

    def worlds(self, most: int = MOST_WORLDS) -> list[list[Losses]]:
        """Return worlds with arms of their own, as `world` does."""
        return [self.world(i) for i in range(min(max(EFFORT // self.effort, FEWEST), most))]

    def world(self, seed: int) -> list[Losses]:
        """Return the losses of each unit."""
        shape: dict[str, Any] = {"horizon": self.rounds, "n_arms": self.n_arms, "max_delay": self.max_delay}
        shape |= {"half_life": self.half_life, "gap": GAP, "noise": GAP * self.noise / self.gap}
        return unit_losses(year(**shape, seed=seed), self.n_units, seed, 0)


def lag_model(setting: Setting, losses: Losses) -> Any:
    """Return the player that learns from every total; it is told no more than that effects last a fortnight at most."""
    lags = max(setting.max_delay, 14)
    return LagPlayer(setting.n_arms, max_lag=lags, horizon=setting.rounds, direction=losses.direction)


def default(setting: Setting, losses: Losses, adviser: str | None = None) -> Any:
    """Return the default player, told how long effects last."""
    return default_player(setting.n_arms, max_delay=setting.max_delay, adviser=adviser, **_told(losses))


def as_published(setting: Setting, losses: Losses) -> Any:
    """Return the player of the paper, tuned for the rounds."""
    given: dict[str, Any] = {"n_arms": setting.n_arms, "max_delay": setting.max_delay, "horizon": setting.rounds}
    return CompositeLossWrapper.tuned(**given, **_told(losses))


def _told(losses: Losses) -> dict[str, Any]:
    span = losses.effects
    return {"direction": losses.direction, "low": span.lo, "high": span.hi, "out_of_range": "clip"}


PLAYERS: dict[str, tuple[str, Callable[[Setting, Losses], Any]]] = {
    "model": ("the lag model", lag_model),
    "advised": ("the advised default player", partial(default, adviser="lags")),
    "unadvised": ("the default player", default),
    "paper": ("the player of the paper", as_published),
}
"""The players to plan with: what each is called, and how it is made for a setting and a world."""


class Option(NamedTuple):
    """A way to choose arms. gains: what it brings over an equal split, in each world; most: what the best arm would.

    test_rounds, winner: how long an A/B test lasts, and how its winner is named, "means" or "lags"; None for a player.
    """

    name: str
    gains: FloatArray
    most: float
    test_rounds: int | None = None
    winner: str | None = None

    @property
    def gain(self) -> float:
        """What it is expected to bring over an equal split."""
        return float(self.gains.mean())

    @property
    def share(self) -> float:
        """The gain over that of knowing the best arm."""
        return self.gain / self.most

    @property
    def error(self) -> float:
        """The standard error of the gain."""
        return float(standard_error(self.gains))

    def ahead_of(self, other: "Option") -> bool:
        """Whether it brings more, by more than a standard error."""
        return self.gain - other.gain > math.hypot(self.error, other.error)


@dataclass(frozen=True)
class Forecast:
    """What to expect of a setting.

    most: what knowing the best arm would bring over an equal split. player, test: the option of the player, and that of
    the better A/B test of the best length. model: that of the lag model; None if it is the player. worlds: how many
    were simulated; the test is judged in others. enough_rounds, enough_units: how many would make a player worth
    while, None if none of those simulated do; tried: the setting that was simulated last.

    >>> forecast = plan(n_arms=2, rounds=20, max_delay=0, noise=0.0)
    >>> round(forecast.most, 9)                      # 0.2 a round, half of which an equal split has too
    2.0
    >>> 0.0 < forecast.player.gain < forecast.most
    True
    """

    setting: Setting
    most: float
    player: Option
    test: Option
    worlds: int
    model: Option | None = None
    enough_rounds: int | None = None
    enough_units: int | None = None
    tried: Setting | None = None

    @property
    def recommended(self) -> Option:
        """The player, unless the lag model brings more, or the A/B test more than both."""
        best = self.better if self.better.ahead_of(self.player) else self.player
        return self.test if self.test.ahead_of(self.better) else best

    @property
    def better(self) -> Option:
        """The better one of the player and the lag model."""
        return self.player if self.model is None or self.model.gain <= self.player.gain else self.model

    @property
    def worthwhile(self) -> bool:
        """Whether a player is recommended, and brings half of what knowing the best arm would."""
        return self.recommended is not self.test and self.recommended.share >= WORTH

    def sentences(self, round: str = "round") -> list[str]:
        """Return the forecast in words, the recommendation first. round: what a round is called.

        >>> plan(n_arms=2, rounds=20, max_delay=9).sentences("day")[0].partition(":")[0]
        'This is too short to learn much'
        """
        setting, one = self.setting, self.recommended
        named = [(f"an A/B test of {counted(self.test.test_rounds or 0, round)}", self.test)]
        named += [(each.name, each) for each in (self.player, self.model) if each is not None]
        name = next(name for name, each in named if each is one)
        others = [f"{other} {_percent(each.share)}" for other, each in named if each is not one]
        shares = f"{_percent(one.share)} of what knowing the best arm would, {', '.join(others)}"
        first = f"{name[0].upper()}{name[1:]} is worth while: it is expected to bring {shares}."
        if one is self.test:
            first = f"Run {name} instead: it is expected to bring {shares}."
        elif not self.worthwhile:
            first = f"This is too short to learn much: {name} is expected to bring {shares}."
        elif one is self.model:
            first = f'Choose {name} instead (player "model"), which has no guarantee: it is expected to bring {shares}.'
        chance = self.test.gain > one.gain and not self.test.ahead_of(one)
        close = "The A/B test is ahead by no more than a standard error, which may be chance."
        where = f" in {setting.n_units} units" if setting.n_units > 1 else ""
        gains = [f"{other} {amount(each.gain, 3)} ± {amount(2.0 * each.error, 2)}" for other, each in named]
        half = f"{amount(setting.half_life, 2)} {round}" + ("" if setting.half_life == 1.0 else "s")
        return [
            first,
            *([close] if self.worthwhile and chance else []),
            *self._enough(round),
            f"Over {counted(setting.rounds, round)}{where}, knowing the best arm from the start would bring "
            f"{amount(self.most, 3)} more than an equal split; {', '.join(gains)}.",
            f"Simulated in {self.worlds} worlds, the A/B test in {len(self.test.gains)} others, with these guesses: an "
            f"action of the best arm brings "
            f"{amount(setting.gap, 3)} more than one of the next, the noise of a total has a standard deviation of "
            f"{amount(setting.noise, 3)}, and "
            + (f"half of an effect has arrived after {half}." if setting.max_delay else "effects arrive at once."),
            "The A/B test gives arms equal turns, and compares mean totals."
            if self.test.winner == "means"
            else f"The A/B test draws an arm for every {counted(HOLD, round)}, and the lag model names its winner.",
        ]

    def _enough(self, round: str) -> list[str]:
        """Return how many rounds or units would make a player worth while, if none is."""
        enough = [] if self.enough_rounds is None else [counted(self.enough_rounds, round)]
        enough += [] if self.enough_units is None else [counted(self.enough_units, "unit")]
        if enough:
            return [f"With about {' or '.join(enough)}, {self.better.name} would be worth while."]
        if self.tried is None:
            return []
        most = f"{counted(self.tried.rounds, round)} or with {counted(self.tried.n_units, 'unit')}"
        return [f"Even over {most}, {self.better.name} would not be worth while."]

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def plan(
    *,
    n_arms: int,
    rounds: int,
    n_units: int = 1,
    max_delay: int = 7,
    half_life: float | None = None,
    gap: float = 0.2,
    noise: float = 0.2,
    player: str = "model",
) -> Forecast:
    """Return what to expect of a player over so many rounds, against an equal split and the best A/B test.

    The A/B test is the better one of two, with the best of four lengths: arms in equal turns, and then the best mean;
    or `rivals.ABTest(..., hold=3, order="random", winner="lags")`, whose winner the lag model names.

    n_arms: K. rounds: T. n_units: M, the units that play in parallel and learn together.
    max_delay: d, how many rounds after its own an effect can still arrive.
    half_life: after how many rounds half of an effect has arrived; by default a third of `max_delay`.
    gap: a guess of how much more an action of the best arm brings than one of the next arm.
    noise: a guess of the standard deviation of a unit's total if the arm never changes, in the units of `gap`.
    player: "model", the lag model (`LagPlayer`); "advised", the default player with `adviser="lags"`; "unadvised", that
        without an adviser; or "paper".

    >>> forecast = plan(n_arms=2, rounds=150, max_delay=7, noise=0.4)
    >>> forecast.worthwhile, forecast.recommended.name
    (True, 'the lag model')
    """
    d = checks.integer("max_delay", max_delay, low=0)
    gap = checks.real("gap", gap, above=0.0, high=MOST_GAP)
    setting = Setting(
        n_arms=checks.integer("n_arms", n_arms, low=2, high=MOST_ARMS),
        rounds=checks.integer("rounds", rounds, low=2 * n_arms, high=LONGEST),
        n_units=checks.integer("n_units", n_units, low=1),
        max_delay=d,
        half_life=max(d / 3.0, 0.1) if half_life is None else checks.real("half_life", half_life, above=0.0),
        gap=gap,
        noise=checks.real("noise", noise, low=0.0, high=MOST_NOISE * gap),
    )
    checks.choice("player", player, tuple(PLAYERS))
    if setting.rounds * setting.n_units > LARGEST:
        got = f"{setting.rounds} * {setting.n_units}"
        raise InvalidArgument(f"rounds * n_units must be at most {LARGEST}, but got {got}")
    worlds = setting.worlds()
    found = _compared(setting, worlds, player)
    if player != "model":
        found = replace(found, model=_played(setting, worlds, "model", found.most))
    if found.worthwhile:
        return found
    other = "model" if found.better is found.model else player
    longer, wider = _first_worth(setting, other, "rounds"), _first_worth(setting, other, "n_units")
    tried = setting._replace(rounds=longer[0], n_units=wider[0])
    return replace(found, enough_rounds=longer[1], enough_units=wider[1], tried=tried)


def _first_worth(setting: Setting, player: str, size: str) -> tuple[int, int | None]:
    """Double a size until a player is worth while; return the last one simulated, and which is enough, or None."""
    effort, last = 0, int(getattr(setting, size))
    for _ in range(DOUBLINGS):
        setting = setting._replace(**{size: 2 * last})
        effort += FEWEST * setting.effort
        if effort > EFFORT or setting.rounds > LONGEST:
            break
        last *= 2
        if _compared(setting, setting.worlds(FEWEST), player).worthwhile:
            return last, last
    return last, None


def _compared(setting: Setting, worlds: Sequence[Sequence[Losses]], player: str) -> Forecast:
    """Return the forecast of a player, without what would make it worth while."""
    most = float(np.mean([setting.rounds * _ahead(setting, units).max() for units in worlds]))
    lengths = sorted({max(setting.n_arms, math.ceil(share * setting.rounds)) for share in SHARES})
    tests = {(n, hold, "means") for n in lengths for hold in (1, math.ceil(n / setting.n_arms))}
    tried = sorted(tests | {(n, HOLD, "lags") for n in lengths})
    best = max(tried, key=lambda each: sum(_test_gain(setting, units, i, *each) for i, units in enumerate(worlds)))
    # In other worlds: in those in which it is the best one it promises too much.
    others = range(MOST_WORLDS, MOST_WORLDS + JUDGED * len(worlds))
    gains = np.array([_test_gain(setting, setting.world(i), i, *best) for i in others])
    test = Option("an A/B test", gains, most, best[0], best[2])
    return Forecast(setting, most, _played(setting, worlds, player, most), test, len(worlds))


def _played(setting: Setting, worlds: Sequence[Sequence[Losses]], player: str, most: float) -> Option:
    """Return what a player brings in these worlds."""
    name, build = PLAYERS[player]
    gains = np.array([_player_gain(setting, build, units, i) for i, units in enumerate(worlds)])
    return Option(name, gains, most)


def _ahead(setting: Setting, units: Sequence[Losses]) -> FloatArray:
    """Return what an action of each arm brings more than the mean of the arms, in the units of totals, times M."""
    means = np.asarray(units[0].means)
    return np.asarray((means - means.mean()) * (setting.n_units * setting.gap / GAP))


def _player_gain(setting: Setting, build: Callable[[Setting, Losses], Any], units: Sequence[Losses], i: int) -> float:
    """Return what a player gains over an equal split in one world."""
    player = build(setting, units[0])
    player = player if setting.n_units == 1 else Panel(player, n_units=setting.n_units)
    found = simulate(player, units[0], runs=1, seed=i, checkpoints=1, threads=1, progress=False)
    ahead = _ahead(setting, units)
    lost = float(found.pseudo_regret[0]) * setting.n_units * setting.gap / GAP
    return float(setting.rounds * ahead.max() - lost)


def _test_gain(
    setting: Setting, units: Sequence[Losses], seed: int, test_rounds: int, hold: int, winner: str
) -> float:
    """Return what an A/B test gains over an equal split in one world: only the test itself is played."""
    how: dict[str, Any] = {"hold": hold, "winner": winner, "max_lag": max(setting.max_delay, 14), "seed": seed}
    how["order"] = "random" if winner == "lags" else "turns"
    test = ABTest(setting.n_arms, test_rounds=test_rounds, **how, **_told(units[0]))
    panel, streams = Panel(test, n_units=len(units)), [each.stream() for each in units]
    ahead, gain = _ahead(setting, units), 0.0
    for _ in range(test_rounds):
        arms = panel.ask()
        gain += float(ahead[arms].mean())
        panel.tell([stream.play(arm) for stream, arm in zip(streams, arms, strict=True)])
    return gain + (setting.rounds - test_rounds) * float(ahead[panel.ask()[0]])


def _percent(share: float) -> str:
    return f"{100.0 * max(share, 0.0):.0f}%"
