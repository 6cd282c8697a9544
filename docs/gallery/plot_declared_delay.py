"""
Which d? What a wrong one costs
===============================

You tell a player the longest delay d. Here effects last up to 8 rounds, but the default player is told
something else. It plays two kinds of losses: effects that are split at random over the rounds, and late
bills: the worse an arm, the later its losses arrive.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")
# `simulate` warns of a d that is too short; here that is intended.
warnings.simplefilter("ignore", ae.AftereffectWarning)

T, longest = 20_000, 8
declared = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
table = ae.tables.iid(T, means=[0.3, 0.5, 0.7], seed=1)
split = ae.spreads.random_split(table, max_delay=longest, seed=2)
late_bills = ae.spreads.kernels(table, weights=np.eye(longest + 1)[[0, 4, 8]])


def regret(losses: ae.Losses, d: int) -> float:
    """Return the regret of a player that is told d and clips impossible totals."""
    player = ae.default_player(n_arms=3, max_delay=d, out_of_range="clip")
    return ae.simulate(player, losses, runs=60, seed=0).mean_regret


# %%
# If d is too large, the regret grows slowly, because blocks are longer than necessary: d = 32 instead of 8
# costs less than three times as much. If d is too small, it depends on the losses. Split at random, all arms
# are equally late, and a d between 1 and 6 learns faster. Late bills are charged to the wrong arm, and with d = 2 or
# less the regret exceeds that of uniform play. In doubt choose the larger d.

fig, ax = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
kinds = {"split at random": (split, "o-"), "late bills": (late_bills, "s--")}
for name, (losses, style) in kinds.items():
    regrets = [regret(losses, d) for d in declared]
    ax.plot(declared, regrets, style, color="C0", label=name)
uniform = table.values.mean() * T - table.values.sum(axis=0).min()
ax.axhline(uniform, color="0.5", ls="--", lw=1.1, label="uniform play")
ax.axvline(longest, color="0.75", lw=3, zorder=1, label="the true longest delay")
ticks = [100, 200, 500, 1_000, 2_000, 5_000]
ax.set(xlabel="d that the player is told", ylabel=f"regret after {T:,} rounds")
ax.set_yscale("log")
ax.set_xticks(range(0, 33, 4))
ax.set_yticks(ticks, labels=[f"{tick:,}" for tick in ticks])
ax.set_yticks([], minor=True)
ax.legend()
plt.show()

# %%
# If effects fade, there is no last round, and every d leaves something for later. `ae.choose_delay` has the bound
# for every d. Without assumptions, what arrives later than d counts twice; if all arms fade alike, as here, it
# misleads nobody, and the shortest d is best, in the bound and in simulations.

fig, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained", sharey=True)
for ax, assume in zip(axes, ("anything", "alike"), strict=True):
    choice = ae.choose_delay(half_life=1.5, n_arms=3, horizon=T, assume=assume, runs=20)
    choice.plot(ax).set_title(f'assume="{assume}"')
plt.show()
