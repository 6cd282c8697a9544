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

fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained", sharey=True)
for ax, told in zip(axes, (8, 2), strict=True):
    player = ae.default_player(n_arms=K, max_delay=told, out_of_range="clip", seed=1)
    stream, arms, totals = losses.stream(), [], []
    for _ in range(T):
        arms.append(player.ask())
        totals.append(stream.play(arms[-1]))
        player.tell(totals[-1])
    ae.carryover.wash_in(arms, totals, max_delay=told, rounds=16).plot(ax)
    ax.set(title=f"told d = {told}", xlabel="round since the change of arm")
    print(ae.carryover.watch(player, ae.carryover.blocks_of(player, totals)).sentence)
axes[1].set_ylabel("")
axes[0].get_legend().remove()
plt.show()

# %%
# The picture describes; the sentences are the results of a test that holds for whatever losses
# (:doc:`/theory/watch`). It needs a player that still plays several arms: a pilot, in which all arms are played,
# has much more power.
