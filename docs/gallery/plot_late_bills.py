"""
Late bills mislead a player that ignores delays
===============================================

Of these three arms, the cheapest one charges its loss at once, and the more expensive ones charge later. A
naive player treats the total of a round as the loss of the arm that it has just played. So it blames the
cheap arm for the bills of the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d, means, delays = 20_000, 10, [0.3, 0.5, 0.7], [0, 5, 10]
table = ae.tables.iid(T, means=means, seed=1)
losses = ae.spreads.kernels(table, weights=np.eye(d + 1)[delays])
players = [
    ae.default_player(n_arms=3, max_delay=d),
    ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=d, horizon=T),
    ae.Naive(ae.Exp3(3, learning_rate=0.006)),
]
simulations = [ae.simulate(player, losses, runs=100) for player in players]

# %%
# Left: what one play of each arm costs on average, and when. Right: the regret against always playing arm 0,
# with 95% bands for the mean of 100 runs. The naive player learns the wrong thing: its regret is larger than
# that of uniform play. The other two know that effects last up to d = 10 rounds, and learn which arm is
# cheap.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
left.bar(delays, means, color=["0.75", "0.5", "0.25"])
for arm in range(3):
    left.text(delays[arm], means[arm] + 0.01, f"arm {arm}", ha="center")
left.set(xlabel="rounds after the play", ylabel="mean loss of one play")
left.set(xlim=(-1.5, d + 1.5), ylim=(0, 0.8))
ae.plot(simulations, right)
uniform = simulations[0].uniform_regrets[0]
right.plot(simulations[0].rounds, uniform, "--", color="0.5", label="uniform play")
right.set_xticks(range(0, T + 1, 5_000))
right.legend()
plt.show()
