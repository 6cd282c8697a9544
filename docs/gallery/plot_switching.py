"""
Probabilities over time when the best arm changes
=================================================

Each of these three arms is the best one for a while. The default player assumes nothing about how losses are
generated. Its guarantee is relative to the best fixed arm, not to the best arm of the moment, but its
probabilities follow the evidence.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d, runs = 30_000, 5, 10
switches = [6_000, 20_000]
table = ae.tables.switching(T, n_arms=3, seed=1, rounds=switches, gap=0.4)
losses = ae.spreads.random_split(table, max_delay=d, seed=2)
probabilities = np.zeros((T, 3))
for seed in range(runs):
    player, world = ae.default_player(n_arms=3, max_delay=d, seed=seed), losses.stream()
    for t in range(T):
        probabilities[t] += player.probabilities / runs
        player.tell(world.play(player.ask()))

# %%
# The height of a colour is the probability of its arm, the mean of ten runs; the words on top say which arm
# is best. The first arm is found soon. After a switch the player has to unlearn what it knew, and the longer
# an arm was the best one, the longer that takes: some 2,500 rounds until the second arm has half of the
# probability, and 7,400 for the third.

fig, ax = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
ax.stackplot(range(T), probabilities.T, colors=["C0", "C1", "C2"])
for arm, (start, end) in enumerate([(0, 6_000), (6_000, 20_000), (20_000, T)]):
    words = f"arm {arm} is best"
    ax.text((start + end) / 2, 1.03, words, color=f"C{arm}", ha="center", weight="bold")
ax.vlines(switches, 0, 1, color="white", ls="--", lw=1.2)
ax.set(xlabel="round", ylabel="probability", xlim=(0, T), ylim=(0, 1))
ax.grid(False)
plt.show()
