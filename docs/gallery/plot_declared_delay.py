"""
Which d? What a wrong one costs
===============================

You tell a player the longest delay d. Here effects last up to 8 rounds, but the default player is told
something else. It plays two kinds of losses: effects that are split at random over the rounds, and late
bills: the worse an arm, the later its losses arrive.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, true = 20_000, 8
table = ae.tables.iid(T, means=[0.3, 0.5, 0.7], seed=1)
kinds = {
    "split at random": ("-", "o", ae.spreads.random_split(table, max_delay=true, seed=2)),
    "late bills": ("--", "s", ae.spreads.kernels(table, weights=np.eye(true + 1)[[0, 4, 8]])),
}
declared = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]

# %%
# If d is too large, the regret grows slowly, because blocks are longer than necessary: d = 32 instead of 8
# costs less than three times as much. If d is too small, it depends on the losses. Split at random, all arms
# are equally late, and a smaller d learns faster. Late bills are charged to the wrong arm, and with d = 2 or
# less the regret exceeds that of uniform play. In doubt choose the larger d.

fig, ax = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
for name, (dashes, mark, losses) in kinds.items():
    # A player with too small a d meets totals that are impossible for it; out_of_range="clip" accepts them.
    sims = [
        ae.simulate(ae.default_player(n_arms=3, max_delay=d, out_of_range="clip"), losses, runs=60, seed=0)
        for d in declared
    ]
    ax.plot(declared, [sim.mean_regret for sim in sims], color="C0", ls=dashes, marker=mark, label=name)
ax.axhline(sims[0].uniform_regrets[0, -1], color="0.5", ls="--", lw=1.1, label="uniform play")
ax.axvline(true, color="0.75", lw=3, zorder=1, label="the true longest delay")
ax.set(yscale="log", xlabel="d that the player is told", ylabel=f"regret after {T:,} rounds", xticks=range(0, 33, 4))
ax.set_yticks([100, 200, 500, 1_000, 2_000, 5_000], labels=["100", "200", "500", "1,000", "2,000", "5,000"])
ax.set_yticks([], minor=True)
ax.legend()
plt.show()
