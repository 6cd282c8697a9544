"""
Sixty stores, ninety days
=========================

Sixty stores choose one of four campaigns a day for a quarter, and share one learner. Effects last for up to a week,
and the sales of a store vary from day to day by more than the best campaign is ahead. What does a quarter bring?
"""

import matplotlib.pyplot as plt

import aftereffect as ae

plt.style.use("aftereffect.figures")

days, stores = 90, 60

# %%
# The plan simulates worlds like this before anything is played; gap and noise are guesses.

print(ae.plan(n_arms=4, rounds=days, n_units=stores, max_delay=7, gap=0.2, noise=0.3))

# %%
# Below: what is lost against the best campaign in every store, per store, in one such world with fresh noise in each
# of 20 runs. LagPlayer learns from the totals of all stores by a model of all effects. The A/B test gives each store
# campaigns at random, for three days at a time, and after twelve days plays in all stores for good what the same model
# names the winner. The default player learns from the ends of blocks only, and more stores do not make them shorter:
# its guarantee, for all effects that are fixed in advance, takes longer than a quarter.

world = ae.year(horizon=days, max_delay=7, noise=0.3, seed=3)
told = {"direction": "maximize", "low": world.low, "high": world.high}
players = {
    "default player": ae.default_player(4, max_delay=7, **told),
    "A/B test of 12 days": ae.rivals.ABTest(
        4, test_rounds=12, hold=3, order="random", winner="lags", **told
    ),
    "LagPlayer": ae.LagPlayer(4, direction="maximize"),
}
fig, ax = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
for (name, player), colour in zip(players.items(), ("C0", "C3", "C1"), strict=True):
    panel = ae.Panel(player, n_units=stores)
    found = ae.simulate(panel, world, runs=20, instances=20, seed=2, progress=False)
    found.plot(ax, name, color=colour)
    print(f"{name}: {found.mean_regret / found.uniform_regrets.mean(axis=0)[-1]:.0%} of an equal split's loss")
uniform = found.uniform_regrets.mean(axis=0)
ax.plot(found.rounds, uniform, "--", color="0.5", label="equal split of all days")
ax.set(xlabel="day", ylabel="lost per store", xlim=(0, days), ylim=(0, None))
ax.legend(loc="upper left")
plt.show()
