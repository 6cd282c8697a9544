"""
The rounds of the paper's Figure 1
==================================

The wrapper tosses a coin in every round. It updates in a round whose coin is 1 if the 2d coins before it are
0, and it draws a new arm in the round after an update. In all other rounds it keeps
its arm.

Here d = 2, and the coins are those of Figure 1 of the paper. The player is told a total in each round, and
each answer says what kind of round it was: draw (D), stay (S) or stay and update (SU).
"""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

import aftereffect as ae

plt.style.use("aftereffect.figures")

d = 2
coins = [int(c) for c in "10100001001000000100001"]
bandit = ae.TsallisFTRL(n_arms=2, learning_rate=2.0)
player = ae.CompositeLossWrapper(bandit, max_delay=d, coins=coins, seed=7)

rounds = []
for _ in coins:
    player.ask()
    rounds.append(player.tell(0.5))

# %%
# Yellow: the 2d + 1 coins that allow an update. Boxes: the blocks, in each of which one arm is played; the
# shortest possible block has 2d + 1 = 5 rounds. Blue: the d + 1 totals that are summed for the update. Every
# effect of the block before has arrived by then, so these totals contain effects of the block's own arm only.

fig, ax = plt.subplots(figsize=(7.6, 2.0), layout="constrained")
start = 0
for t, (coin, played) in enumerate(zip(coins, rounds, strict=True)):
    kind = ("D" if played.draw else "S") + ("U" if played.update else "")
    ax.text(t + 0.5, 1.5, coin, ha="center", va="center")
    ax.text(t + 0.5, 0.5, kind, ha="center", va="center")
    if played.update:
        ax.add_patch(Rectangle((t - 2 * d, 1), 2 * d + 1, 1, color="#ffe873", zorder=0))
        ax.add_patch(Rectangle((t, 0), 1, 1, color="#ffe873", zorder=0))
        block = Rectangle((start, 0), t + 1 - start, 2, fill=False, ec="C1", lw=2)
        ax.add_patch(block)
        left, right = t - d + 0.15, t + 0.85
        ax.plot([left, left, right, right], [-0.15, -0.4, -0.4, -0.15], color="C0", lw=2)
        ax.text(t + 0.5 - d / 2, -0.8, "summed", ha="center", va="center", color="C0")
        start = t + 1
ax.set(xlim=(-0.1, len(coins) + 0.1), ylim=(-1.1, 2.1))
ax.set_yticks([0.5, 1.5], labels=["round", "coin"])
ax.set_xticks([t + 0.5 for t in range(len(coins))], labels=range(1, len(coins) + 1))
ax.set_xlabel("number of the round")
ax.tick_params(length=0)
ax.grid(False)
ax.spines[:].set_visible(False)
plt.show()
