"""
The price of anonymity
======================

If every late loss says which round it comes from, algorithms for labelled delayed feedback can learn from it.
Here they play beside players that see only the sum of each round. The losses are the same: each arrives
whole, after a random delay of at most d rounds.
"""

import matplotlib.pyplot as plt

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, K = 20_000, 4
delays = [0, 2, 4, 8, 16, 32]
table = ae.tables.iid(T, means=[0.3, 0.5, 0.5, 0.5], seed=1)
regrets = []
for d in delays:
    losses = ae.spreads.randomly_delayed(table, max_delay=d, seed=2)
    players = (
        ae.default_player(n_arms=K, max_delay=d),
        ae.CompositeLossWrapper.tuned(n_arms=K, max_delay=d, horizon=T),
        ae.labelled.ZimmertSeldin2020(K, max_delay=d),
        ae.labelled.DelayedExp3.tuned(K, max_delay=d, horizon=T),
    )
    simulations = [ae.simulate(player, losses, runs=20) for player in players]
    regrets.append([simulation.mean_regret for simulation in simulations])

# %%
# Dashed lines: players with labels. From d = 2 on the smallest regret is that of a player with labels, and
# for d = 32 it is less than half of the default player's. That is the price of anonymity: without labels a
# player has to stay with an arm until the effects of the one before have arrived. A better learner can make
# up for it: the default player has less regret than delayed Exp3, although only delayed Exp3 sees labels.

fig, ax = plt.subplots(figsize=(7.6, 4.0), layout="constrained")
styles = {"C0": "o-", "C1": "s-", "C3": "^--", "C4": "D--"}
for k, (colour, style) in enumerate(styles.items()):
    mine = [row[k] for row in regrets]
    ax.plot(delays, mine, style, color=colour, label=simulations[k].label)
ax.set(xlabel="longest delay d, in rounds", ylabel=f"regret after {T:,} rounds")
ax.set_ylim(0)
ax.legend()
plt.show()
