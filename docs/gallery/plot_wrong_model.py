"""
A wrong model, and what it costs
================================

The default player follows any adviser within a budget. If the adviser is right, it learns sooner; if the adviser is
wrong, or wants the worst arm to be played, the budget is spent, and from then on it learns as if alone:
:doc:`/theory/advice` has the proof.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d, K = 20_000, 2, 4
table = ae.tables.iid(T, means=[0.4, 0.6, 0.6, 0.6], seed=1)
losses = ae.spreads.random_split(table, max_delay=d, seed=2)
advisers = {
    "no adviser": None,
    "right: arm 0, with 80%": ae.advisers.Opinion([80, 7, 7, 6]),
    "wrong: arm 3, with 80%": ae.advisers.Opinion([7, 7, 6, 80]),
    "malicious: arm 3, with 100%": ae.advisers.Opinion([0, 0, 0, 100]),
    "useless: it ignores that effects are late": ae.advisers.Learner(ae.UCB1(K)),
}
rounds = np.unique(np.geomspace(10, T, 60).astype(int)).tolist()

# %%
# Four arms with a gap of 0.2, effects that arrive over three rounds. Bands are 95% intervals over 100 runs.

fig, ax = plt.subplots(figsize=(6.8, 4.0), layout="constrained")
for name, adviser in advisers.items():
    player = ae.default_player(n_arms=K, max_delay=d, adviser=adviser)
    sim = ae.simulate(player, losses, runs=100, seed=3, checkpoints=rounds, progress=False)
    sim.plot(ax, label=name)
ax.set(xscale="log", xlim=(10, T))
ax.set_ylim(0)
ax.legend()
plt.show()

# %%
# What was followed, and what it may cost, is said in words.

player = ae.default_player(n_arms=K, max_delay=d, adviser=advisers["malicious: arm 3, with 100%"], seed=5)
stream = losses.stream()
for _ in range(5_000):
    player.tell(stream.play(player.ask()))
print(player.advice)
print(player.certificate())
