"""
Regret that grows with the logarithm of T
=========================================

If losses come from one law, the regret of the default player grows with ln T, also under composite anonymous
feedback: :doc:`/theory/both_worlds` proves it. Its predecessor, the same player around ``AdaptiveTsallis``, whose
rate does not match its penalties to its costs, learns as fast at first; later its regret grows like a power of T.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d = 10_000_000, 10
table = ae.tables.iid(T, means=[0.4, 0.6], seed=1)
losses = ae.spreads.delayed(table, delays=d, max_delay=d)
rounds = np.unique(np.geomspace(1_000, T, 40).astype(int)).tolist()
players = {
    "default player": ae.default_player(n_arms=2, max_delay=d, seed=0),
    "with AdaptiveTsallis": ae.CoinCleanWrapper(ae.AdaptiveTsallis(n_arms=2), max_delay=d, seed=0),
}
found = {
    name: ae.simulate(player, losses, runs=40, seed=0, checkpoints=rounds, progress=False)
    for name, player in players.items()
}

# %%
# Two arms with a gap of 0.2, every loss 10 rounds late, up to ten million rounds. On the logarithmic axis the
# default player's regret is a straight line. Bands are 95% intervals over 40 runs on the same losses.

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, sim), colour in zip(found.items(), ("C0", "C1"), strict=True):
    mean = sim.regrets.mean(axis=0)
    error = 1.96 * sim.regrets.std(axis=0, ddof=1) / np.sqrt(len(sim.regrets))
    ax.plot(rounds, mean, color=colour, label=name)
    ax.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
late = np.array(rounds) >= 10_000
mean = found["default player"].regrets.mean(axis=0)
slope, start = np.polyfit(np.log(np.array(rounds)[late]), mean[late], 1)
line = f"{slope:.0f} ln T − {-start:.0f}"
ax.plot(rounds, start + slope * np.log(rounds), color="0.5", ls="--", zorder=1, label=line)
ax.set(xscale="log", xlabel="T", ylabel="regret", xlim=(rounds[0], T))
ax.set_ylim(0)
ax.legend()
plt.show()
