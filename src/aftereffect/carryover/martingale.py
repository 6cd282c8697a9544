"""`watch`: a test, while a player runs, of whether effects last longer than the d it was told.

If effects end within d rounds, the totals of the clean rounds of block n (all but its first d) depend on the arm J_n of
that block, but not on the arm J_{n−1} of the block before. So for every arm j

    X = (1{J_{n−1} = j} − q_{n−1}(j)) · f(J_n)/q_n(J_n) · g(J_n, totals of block n)

has mean zero, where q_n are the probabilities of block n, and f ≤ q_n and g ∈ [−1, 1] are fixed before J_{n−1} is
drawn. The wealth of a gambler who bets on X in every second block is a martingale, whatever the losses are, and seldom
becomes large: the probability of a false alarm is at most α, however often one looks. docs/theory/watch.md has the
proof.

f(i) is a lower bound of q_n(i) over all that block n−1 may show. Where a player has settled on an arm, X is almost
always 0, and nothing can be learned any more: `Watch.no_power` says so.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.text import counted
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.wrapper import BlockWrapper

MOST_STAKE = 0.5
"""The largest share of a gambler's wealth that is bet on one product. Chosen here."""
FEWEST_BLOCKS = 200
"""The test is not called powerless while fewer further blocks than this are needed. Chosen here."""
SAFETY = 1.0 - 1e-6
"""Lower bounds of probabilities are multiplied by this; the rounding errors of a player are far smaller."""


class Block(NamedTuple):
    """A block that has ended with an update.

    arm: J_n. totals: those of its clean rounds that are known. fed: the loss that the base was fed; None if a total or
    a sum of totals was out of range and void, where the test stops. measured: the number of rounds that were summed for
    it. probability: that of the arm, if recorded. The test stops at a block whose recorded probability differs from the
    replayed one: a late correction changed the learner.

    >>> from aftereffect import default_player
    >>> player, totals = default_player(n_arms=2, max_delay=1, seed=1), []
    >>> for _ in range(12):
    ...     totals.append(0.75 if player.ask() else 0.25)
    ...     played = player.tell(totals[-1])
    >>> [(block.arm, block.totals) for block in blocks_of(player, totals)]
    [(1, [0.75]), (0, [0.25, 0.25, 0.25]), (0, [0.25, 0.25, 0.25, 0.25])]
    """

    arm: int
    totals: Sequence[float]
    fed: float | None
    measured: int
    probability: float | None = None


@dataclass(frozen=True)
class Watch:
    """The result of the test after some blocks.

    blocks: how many were used. log_wealth: the logarithms of the wealth of the gamblers on even and on odd blocks, who
    began with 1. log_evidence: the logarithm of half the greatest wealth that either had. growth: the mean growth of
    the logarithm of a wealth per block that late effects can cause at most, at the present probabilities.
    blocks_needed: how many more blocks an alarm takes at this growth. stopped: which block the test stopped at, in
    words; empty if it used all.

    >>> from aftereffect import default_player
    >>> player, totals = default_player(n_arms=2, max_delay=1, seed=1), []
    >>> for _ in range(12):
    ...     totals.append(0.75 if player.ask() else 0.25)
    ...     played = player.tell(totals[-1])
    >>> found = watch(player, blocks_of(player, totals))
    >>> found.alarm, found.p_value
    (False, 1.0)
    """

    max_delay: int
    level: float
    blocks: int
    log_wealth: tuple[float, float]
    log_evidence: float
    growth: float
    blocks_needed: float
    stopped: str = ""

    @property
    def alarm(self) -> bool:
        """Whether it is refuted, at this level, that effects end within max_delay rounds."""
        return self.log_evidence >= -math.log(self.level)

    @property
    def p_value(self) -> float:
        """A p-value that holds however often one looks."""
        return math.exp(min(0.0, -self.log_evidence))

    @property
    def no_power(self) -> bool:
        """Whether even the largest possible effects would need more further blocks than have been played, and more than
        200.
        """
        return not self.alarm and self.blocks_needed > max(self.blocks, FEWEST_BLOCKS)

    @property
    def sentence(self) -> str:
        """The result in words."""
        rounds, p = counted(self.max_delay, "round"), f"p = {self.p_value:.2g}" if self.p_value else "p < 1e-300"
        stop = f" The test stopped before block {self.blocks + 1:,}, {self.stopped}." if self.stopped else ""
        if self.alarm:
            return (
                f"Effects last longer than {rounds}: the totals of a block depend on the arm before it ({p}; "
                f"a false alarm has a probability of at most {self.level:.0%}, however often one looks).{stop}"
            )
        seen = counted(self.blocks, "block")
        found = f"In {seen} the test finds no sign that effects last longer than {rounds} ({p})"
        if stop or not self.no_power:
            return f"{found}. That is no proof that they do not.{stop}"
        needed = f"at least {self.blocks_needed:,.0f}" if math.isfinite(self.blocks_needed) else "infinitely many"
        return (
            f"{found}. It has no power left: at the present probabilities even the largest possible effects "
            f"would take {needed} more blocks to be found."
        )


def blocks_of(player: BlockWrapper, totals: Iterable[float | None]) -> list[Block]:
    """Return the finished blocks of a player that was told these totals, by playing its rounds again.

    player: a CoinCleanWrapper or CompositeLossWrapper, which is not changed. totals: of all its rounds, None where
    missing; none of them may have been amended or corrected. If a total is void, its block is the last, with fed=None.

    >>> from aftereffect import default_player
    >>> player, totals = default_player(n_arms=2, max_delay=1, seed=1), []
    >>> for _ in range(12):
    ...     totals.append(0.75 if player.ask() else 0.25)
    ...     played = player.tell(totals[-1])
    >>> len(blocks_of(player, totals))
    3
    """
    again, found, end = unplayed(player), list[Block](), player.unsealed()
    totals = list(totals)
    if len(totals) != player.rounds_played:
        rounds = counted(player.rounds_played, "round")
        raise InvalidArgument(f"totals must have one entry for each of the player's {rounds}, but got {len(totals)}")
    d, clean, start = again.max_delay, list[float](), 1
    for t, total in enumerate(totals, start=1):
        again.ask()
        if again.block_start != start:
            clean, start = [], again.block_start
        if total is not None and t - start >= d:
            clean.append(float(total))
        played = again.tell(total)
        if found and found[-1].fed is None:
            continue
        if again.out_of_range == "void" and again.counts.out_of_range:
            found.append(Block(played.arm, clean, None, 1))
        elif played.fed_loss is not None:
            measured = again.coins.gap - d if isinstance(again, CoinCleanWrapper) else d + 1
            found.append(Block(played.arm, clean, played.fed_loss, measured))
    if end["open"]:
        again.ask()
    replayed = again.unsealed()
    if differ := [name for name, value in end.items() if value != replayed.get(name)]:
        raise InvalidArgument(
            "player must have played run 0 of its seed, and heard these totals and nothing else (no amendment, no "
            f"correction), but played again it differs in {', '.join(differ)}"
        )
    return found


def watch(player: BlockWrapper, blocks: Iterable[Block], *, level: float = 0.05) -> Watch:
    """Test whether effects last longer than the player's max_delay.

    player: as for `blocks_of`. Its base must be a MatchedTsallis, AdaptiveTsallis, TsallisFTRL or Exp3. blocks: from
    the first on. level: α, the greatest probability of a false alarm.

    >>> import aftereffect as ae
    >>> table = ae.tables.iid(600, means=[0.4, 0.8], seed=1)
    >>> bills = ae.spreads.kernels(table, weights=[[1.0, 0.0], [0.0, 1.0]]).stream()
    >>> player, totals = ae.default_player(n_arms=2, max_delay=0, out_of_range="clip", seed=1), []
    >>> for _ in range(600):                     # told d = 0, although arm 1 costs one round later
    ...     totals.append(bills.play(player.ask()))
    ...     played = player.tell(totals[-1])
    >>> watch(player, blocks_of(player, totals)).alarm
    True
    """
    level = checks.real("level", level, above=0.0, high=0.5)
    again = unplayed(player)
    base: Any = again.bandit
    K, n, stopped = base.n_arms, 0, ""
    # Logarithms. One row for even blocks, one for odd ones; one gambler per arm.
    wealth, best = np.zeros((2, K)), 0.0
    scores = Scores(K)
    # The share of its wealth that each gambler bets is about the best one for the products so far.
    sums, squares = np.zeros(K), np.ones(K)
    before: tuple[Block, FloatArray, FloatArray] | None = None
    product, least = np.zeros(K), base.probabilities
    for given in blocks:
        if given.fed is None:
            stopped = "in which reported totals were out of range or not learned from"
            break
        block, fed, terms = _checked(again, given, f"blocks[{n}]")
        q = base.probabilities
        if block.probability is not None and not math.isclose(q[block.arm], block.probability, rel_tol=1e-9):
            stopped = "whose recorded probability differs from the replayed one, as after a late correction"
            break
        n += 1
        least = least_probabilities(base, terms)
        if not q[block.arm]:
            found = f"block {n} has an arm of probability 0, {block.arm}"
            raise InvalidArgument(f"blocks must be those of the player, but {found}")
        if before is not None:
            earlier, p, f = before
            now = (np.eye(K)[earlier.arm] - p) * (f[block.arm] / q[block.arm] * scores.score(block))
            wealth[n % 2] += np.log1p(np.clip(sums / squares, -MOST_STAKE, MOST_STAKE) * now)
            best = max(best, _log_mean(wealth[n % 2]))
            # Not sooner: a bet on block n may use only what was known before the arm of block n-1 was drawn.
            scores.add(earlier)
            sums += product
            squares += product**2
            product = now
        before = block, q, least
        again.learn([block.arm], [fed], block.measured + again.max_delay)
    q = base.probabilities
    # A gambler bets in every second block.
    growth = 0.5 * 2.0 * MOST_STAKE * float((q * (1.0 - q)).max()) * float(least.sum())
    even, odd = (_log_mean(each) for each in wealth)
    missing = math.log(2.0 / level) - max(even, odd)
    needed = 0.0 if missing <= 0.0 else missing / growth if growth > 0.0 else math.inf
    return Watch(again.max_delay, level, n, (even, odd), best - math.log(2.0), growth, needed, stopped)


class Scores:
    """g: a block's mean clean total less the mean of its arm so far, over two standard deviations, cut to [−1, 1]."""

    def __init__(self, n_arms: int) -> None:
        self.counts, self.means = np.zeros(n_arms), np.zeros(n_arms)
        self.squares = 0.0

    def score(self, block: Block) -> float:
        """Return the score of a block; 0 if nothing is known about its arm."""
        spread = self.squares / max(1.0, float(self.counts.sum()) - float((self.counts > 0.0).sum()))
        if not len(block.totals) or not self.counts[block.arm] or spread <= 0.0:
            return 0.0
        return float(np.clip((np.mean(block.totals) - self.means[block.arm]) / (2.0 * math.sqrt(spread)), -1.0, 1.0))

    def add(self, block: Block) -> None:
        """Add a block to the mean of its arm and to the squares around the means."""
        if len(block.totals):
            x, i = float(np.mean(block.totals)), block.arm
            self.counts[i] += 1.0
            off = x - self.means[i]
            self.means[i] += off / self.counts[i]
            self.squares += off * (x - self.means[i])


def least_probabilities(bandit: Any, terms: kernel.Terms) -> FloatArray:
    """Return a lower bound, for each arm, of its probability after the next update.

    It holds whichever arm is played and whatever loss in [0, top] it has; terms: weight, offset and top of the loss.
    """
    q, K = bandit.probabilities, bandit.n_arms
    if isinstance(bandit, TsallisFTRL | Exp3):
        # An estimated loss, never negative, is added to the arm played: an arm is least probable after a loss of 1.
        twins = [bandit.from_state(bandit.state()) for _ in range(K)]
        for arm, twin in enumerate(twins):
            twin.learn(arm, 1.0)
        return SAFETY * np.array([twin.probabilities[arm] for arm, twin in enumerate(twins)])
    if not isinstance(bandit, AdaptiveTsallis):
        raise InvalidArgument(
            "bandit must be a MatchedTsallis, AdaptiveTsallis, TsallisFTRL or Exp3, whose next probabilities can be "
            f"bounded, but got {checks.shown(bandit)}"
        )
    weight, offset, top = terms
    eta, expected = bandit.learning_rate, max(offset + bandit.usual_loss * weight, 0.0)
    b = np.minimum(expected, top * eta * np.sqrt(q) / (eta * np.sqrt(q) + top))
    # The rate rises by at most that: for a matched rate by its rule, for the other by Lemma 4 of adaptive.md.
    rise = max(eta, 2.0 * top) if bandit.growth is None else bandit.growth * 1.5 * top / (2.0 * (math.sqrt(K) - 1.0))
    # Estimated losses after every arm with the least and the greatest loss. For a given rate q(i) is monotone in the
    # loss, for a given loss it is quasiconcave in the rate: its minimum is at a corner.
    corners = [
        (bandit.estimated_losses + b + np.eye(K)[arm] * (loss - b[arm]) / q[arm], rate)
        for arm in np.flatnonzero(q)
        for loss in (0.0, top)
        for rate in (eta, eta + rise)
    ]
    losses, rates = (np.array(each) for each in zip(*corners, strict=True))
    return np.asarray(SAFETY * tsallis_probabilities(losses, rates).min(axis=0))


def tsallis_probabilities(losses: FloatArray, rates: FloatArray) -> FloatArray:
    """Return q(i) = (L(i)/η + u)⁻², which sum to 1, for each row of losses and its rate."""
    x = (losses - losses.min(axis=1, keepdims=True)) / rates[:, np.newaxis]
    u = np.ones((len(x), 1))
    # Newton's method from below increases u up to the root, since the sum is convex and decreasing in u.
    for _ in range(100):
        y = 1.0 / (x + u)
        step = ((y**2).sum(axis=1, keepdims=True) - 1.0) / (2.0 * (y**3).sum(axis=1, keepdims=True))
        u += step
        if np.abs(step).max() < 1e-12:
            break
    return np.asarray((x + u) ** -2.0)


def unplayed(player: BlockWrapper) -> BlockWrapper:
    """Return an unplayed player with the same settings, coins and seed."""
    if player.n_units != 1:
        raise InvalidArgument(f"player must be of a single unit to be watched, but has {player.n_units} units")
    if isinstance(player, AdvisedWrapper):
        raise InvalidArgument(
            "player must not be advised to be watched, since its next probabilities cannot be bounded in advance, "
            f"but got {checks.shown(player)}"
        )
    kind: Any = type(player)
    coins: Any = player.coins
    given = coins.sequence if player.update_probability is None else player.update_probability
    made: BlockWrapper = kind(player.bandit.fresh(), coins=given, seed=player.seed, **player.settings)
    return made


def _checked(player: BlockWrapper, block: Block, name: str) -> tuple[Block, float, kernel.Terms]:
    """Return a block, the loss that was fed, and its weight, offset and top; refuse numbers that cannot be."""
    arm = checks.integer(f"{name}.arm", block.arm, low=0, high=player.n_arms - 1)
    measured = checks.integer(f"{name}.measured", block.measured, low=1)
    totals = checks.array(f"{name}.totals", block.totals, shape=("rounds",)).tolist()
    terms = 1.0, 0.0, 1.0
    if isinstance(player, CoinCleanWrapper):
        terms = effects.stretch_terms(player.effects, player.max_delay, measured, player.scale)
    fed = checks.real(f"{name}.fed", block.fed, low=0.0, high=terms[2])
    return block._replace(arm=arm, measured=measured, totals=totals), fed, terms


def _log_mean(logs: FloatArray) -> float:
    """Return the logarithm of the mean of numbers given by their logarithms."""
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))
