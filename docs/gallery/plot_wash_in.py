"""
Does an effect last longer than the player was told?
====================================================

The worse an arm, the later its losses arrive: at once, after 4 and after 8 rounds. Two players are told different
delays, and the second one is told too little. Afterwards one may ask the rounds they have played.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, K, delays = 4000, 3, [0, 4, 8]
table = ae.tables.iid(T, means=[0.3, 0.5, 0.7], seed=4)
losses = ae.spreads.kernels(table, weights=np.eye(9)[delays])

# %%
# A round counts from the change of arm. In its first d rounds, shaded, a total still contains effects of the arm
# before. If effects end within d rounds, the mean total of an arm is level from then on, as on the left. On the right
# it is not: for eight rounds the totals of the cheap arm 0 contain what the others have left behind.


def show(ax, arms, totals, told, rounds=16):
    """Plot the mean totals of each arm by the rounds since the change to it, less its mean total later on."""
    time = np.arange(T)
    changed = np.append(False, arms[1:] != arms[:-1])
    since = time - np.maximum.accumulate(np.where(changed, time, 0)) + 1
    since[: changed.argmax()] = 0  # it is not known since when the first arm was played
    late = [totals[(arms == i) & (since > 2 * told + 1)].mean() for i in range(K)]
    for i in range(K):
        places = [totals[(arms == i) & (since == r)] for r in range(1, rounds + 1)]
        means = [found.mean() - late[i] if len(found) >= 5 else np.nan for found in places]
        ax.plot(range(1, rounds + 1), means, "o-", ms=3, lw=1, label=f"arm {i}")
    ax.axhline(0.0, color="0.75", lw=1, zorder=1)
    ax.axvspan(0.5, told + 0.5, color="0.93", lw=0, zorder=0)


fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained", sharey=True)
for ax, told in zip(axes, (8, 2), strict=True):
    player = ae.default_player(n_arms=K, max_delay=told, out_of_range="clip", seed=1)
    stream, arms, totals = losses.stream(), [], []
    for _ in range(T):
        arms.append(player.ask())
        totals.append(stream.play(arms[-1]))
        player.tell(totals[-1])
    show(ax, np.array(arms), np.array(totals), told)
    ax.set(title=f"told d = {told}", xlabel="round since the change of arm")
    print(ae.carryover.watch(player, ae.carryover.blocks_of(player, totals)).sentence)
axes[0].set_ylabel("mean total, relative to the arm's late mean")
axes[1].legend(frameon=False)
plt.show()

# %%
# The picture describes; the sentences are the results of a test that holds for whatever losses
# (:doc:`/theory/watch`). It needs a player that still plays several arms: a pilot, in which all arms are played,
# has much more power.
