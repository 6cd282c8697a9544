"""
Late bills mislead a player that ignores delays
===============================================

Three arms: the cheapest one charges its loss at once, the dearer ones send their bills later. A naive player
takes the total of a round for the loss of the arm that it has just played. So it blames the cheap arm for the
bills of the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d, means, delays = 20_000, 10, [0.3, 0.5, 0.7], [0, 5, 10]
table = ae.tables.iid(T, means=means, seed=1)
losses = ae.spreads.kernels(table, weights=np.eye(d + 1)[delays])
players = {
    "default player": ("C0", ae.default_player(n_arms=3, max_delay=d)),
    "wrapper, Tsallis FTRL": ("C1", ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=d, horizon=T)),
    "naive Exp3": ("C3", ae.Naive(ae.Exp3(3, learning_rate=0.006))),
}

# %%
# Left: what one play of each arm costs on average, and when. Right: the regret against always playing arm 0,
# with 95% bands for the mean of 100 runs. Naive Exp3 has a larger regret than uniform play: it learns, but
# the wrong thing. The other two players know that effects last up to d = 10 rounds, and learn which arm is
# cheap.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=[2, 3], layout="constrained")
for arm in range(3):
    left.bar(delays[arm], means[arm], width=0.8, color=f"{0.75 - 0.25 * arm}")
    left.annotate(f"arm {arm}", (delays[arm], means[arm]), (0, 3), textcoords="offset points", ha="center")
left.set(xlabel="rounds after the play", ylabel="mean loss of one play", ylim=(0, 0.8))
left.set(xlim=(-1.5, d + 1.5), xticks=range(0, d + 1, 2))
left.grid(axis="x", visible=False)
for name, (colour, player) in players.items():
    sim = ae.simulate(player, losses, runs=100, seed=0)
    sim.plot(right, label=name, color=colour)
right.plot(sim.rounds, sim.uniform_regrets[0], color="0.5", ls="--", label="uniform play")
right.set_xticks(range(0, T + 1, 5_000))
right.legend()
plt.show()
