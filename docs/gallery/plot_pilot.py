"""
From a pilot to a player
========================

A real advertising system (Mussi, Metelli and Restelli, "Dynamical linear bandits", ICML 2023) has three channels,
and the arms are the six ways to give them budgets of 1, 1/2 and 0. Effects last for about 14 rounds and change
their sign. The user knows nothing of this: a pilot measures it.
"""

import warnings

import matplotlib.pyplot as plt

import aftereffect as ae
from aftereffect.losses.linear_system import ADVERTISING, system_rewards

plt.style.use("aftereffect.figures")
# `simulate` warns of a d that is shorter than the effects.
warnings.simplefilter("ignore", ae.AftereffectWarning)

T, PILOT = 20_000, 300

# %%
# The pilot
# ---------
#
# The pilot plays random arms for 300 rounds, and looks for effects up to 20 rounds after the action. With a guess of
# the noise it says before the start how well the effects will be known.

pilot = ae.carryover.Pilot(n_arms=6, rounds=PILOT, max_lag=20, seed=1)
print(pilot.expected_width(noise=0.02))

# %%
# Here the system answers. In practice these are the totals that you observe.

world = system_rewards(ADVERTISING, max_delay=40, horizon=PILOT, seed=1)
totals = world.totals(pilot.arms)

# %%
# The curves
# ----------
#
# What has arrived of each arm's effect, relative to the mean of the arms. The budgets 1/2, 1, 0 look best at once, and
# are worse than the mean five rounds later: a player that is told d = 0 would choose them.

curves = pilot.estimate(totals)
names = [" / ".join(f"{budget:g}" for budget in arm) for arm in ADVERTISING.arms]
fig, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
curves.plot(ax, names=names)
plt.show()
print(curves)

# %%
# The choice of d
# ---------------
#
# The bound as if the estimate were right, the bound at the worst end of the bands, and the regret simulated on the
# estimated curves. 20,000 rounds are too few for any of these bounds to say much. So the d is chosen whose bound is the
# first to fall below half of what always playing the worst arm costs.

bounds = {"direction": "maximize", "low": world.low, "high": world.high}
choice = ae.choose_delay(curves=curves, n_arms=6, horizon=T - PILOT, runs=20, **bounds)
fig, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
choice.plot(ax)
plt.show()
print(choice)

# %%
# The player
# ----------
#
# The default player with this d goes on after the pilot. Its improvement over uniform play, with the pilot's rounds
# counted, is compared to that of a player that was told d = 14 from the start.

whole = ADVERTISING.responses(40).sum(axis=0)
uniform = T * (whole.max() - whole.mean())


def improvement(max_delay: int, horizon: int, spent: float) -> float:
    """Return the improvement over uniform play, if this much regret was spent before."""
    player = ae.default_player(n_arms=6, max_delay=max_delay, out_of_range="clip", **bounds)
    rewards = system_rewards(ADVERTISING, max_delay=40, horizon=horizon, seed=2)
    regret = ae.simulate(player, rewards, runs=50, seed=0, progress=False).mean_regret
    return 1 - (regret + spent) / uniform


spent = (whole.max() - whole[pilot.arms]).sum()
measured = improvement(choice.max_delay, T - PILOT, spent)
told = improvement(14, T, 0)
print(f"measured, d = {choice.max_delay}: {measured:.0%}; told d = 14: {told:.0%} better than uniform play")
