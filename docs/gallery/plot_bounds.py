"""
Regret against its bounds
=========================

If the best arm is much better than the others, it can be found soon; if it is hardly better, missing it costs
little. So the regret depends on the gap between them. Bounds that hold for all losses do not.
"""

import matplotlib.pyplot as plt

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, K, d = 100_000, 4, 4
sizes = {"n_arms": K, "max_delay": d}
default = ae.default_player(**sizes)
paper = ae.CompositeLossWrapper.tuned(**sizes, horizon=T)
sharp = ae.CompositeLossWrapper.tuned(**sizes, horizon=T, form="sharp")
gaps = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
worlds = []
for gap in gaps:
    table = ae.tables.iid(T, means=[0.5 - gap, 0.5, 0.5, 0.5], seed=1)
    worlds.append(ae.spreads.random_split(table, max_delay=d, seed=2))


def regrets(player: ae.Player) -> list[float]:
    """Return the mean pseudo-regret for each gap: it has less noise than the regret."""
    found = (ae.simulate(player, losses, runs=40, seed=0) for losses in worlds)
    return [simulation.pseudo_regret.mean() for simulation in found]


# %%
# Lines with marks are simulated; the lines across are proved for this K, d and T. A dashed line bounds the
# regret of the player of its colour on all losses. No player can stay below the dotted line on all losses.
# The grey line is T, the largest possible regret.
#
# The regret of the default player is largest for a gap of about 0.02, and smaller where the best arm is
# easier to find. The wrapper with a learning rate that is tuned to the worst case is still learning after
# 100,000 rounds, so its regret grows with the gap. All three stay below their bounds: the default player by a
# factor of 40, the wrapper with the sharp tuning by a factor of 2 at the largest gap.

fig, ax = plt.subplots(figsize=(7.6, 4.8), layout="constrained")
for name, player, bound, colour, style in (
    ("default player", default, default.regret_bound(T), "C0", "o-"),
    ("wrapper, paper's tuning", paper, ae.theory.corollary_bound(K, d, T), "C1", "s-"),
    ("wrapper, sharp tuning", sharp, sharp.regret_bound(T, form="sharp"), "C5", "^-"),
):
    ax.plot(gaps, regrets(player), style, color=colour, label=name)
    ax.axhline(bound, color=colour, ls="--", label=f"its bound: {bound:,.0f}")
ax.axhline(T, color="0.75", lw=3, label="T, the trivial bound")
ax.axhline(ae.theory.lower_bound(K, d, T), color="k", ls=":", label="lower bound")
ax.set(xscale="log", yscale="log", ylabel=f"regret after {T:,} rounds")
ax.set_xlabel("gap between the best arm and the others")
ax.set_xticks(gaps, labels=gaps)
ax.set_xticks([], minor=True)
fig.legend(loc="outside lower center", ncols=4)
plt.show()
