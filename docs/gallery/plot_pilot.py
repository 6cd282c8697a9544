"""
From a pilot to a player, on a real advertising system
======================================================

Every day a budget is divided among three channels: 1, 1/2 and 0, in one of six ways. Effects on sales last for
days, and nobody knows for how many. A pilot with random arms measures it, ``ae.choose_delay`` proposes d, and a
player begins with what the pilot has shown.

The system was identified from a company's data by Mussi, Metelli and Restelli (*Dynamical Linear Bandits*, ICML
2023; repository `marcomussi/DLB <https://github.com/marcomussi/DLB>`_, MIT licence). Its second channel has the
largest effect on the same day, and a negative one in total.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae
from aftereffect.losses.linear_system import ADVERTISING, system_rewards

plt.style.use("aftereffect.figures")

# The simulator warns of a d that is shorter than the effects.
warnings.simplefilter("ignore", ae.AftereffectWarning)

T, K, pilots = 20_000, 6, 6
names = [" / ".join(f"{budget:g}" for budget in arm) for arm in ADVERTISING.arms]
# What the user knows: the number of arms, and a range for the whole effect of one action.
known = {"direction": "maximize", "low": -0.42, "high": 0.58}


def totals(arms, seed):
    """Return the totals of the system if these arms are played; effects are followed for 40 days."""
    rounds = len(arms)
    return system_rewards(ADVERTISING, max_delay=40, horizon=rounds, seed=seed).totals(arms)


# %%
# The pilot
# ---------
#
# Twenty days should be long enough. The noise of a day's sales is guessed at 0.02: before anything is played,
# that says how precisely a pilot of 600 days measures.

pilot = ae.carryover.Pilot(n_arms=K, rounds=600, max_lag=20, seed=1)
print(pilot.expected_width(noise=0.02))

# %%
# Sales are recorded, and estimated is what differs between the arms.

curves = pilot.estimate(totals(pilot.arms, seed=1))
choice = ae.choose_delay(curves=curves, n_arms=K, horizon=T - pilot.rounds, runs=4, **known)
print(curves)
print(choice)

# %%
# Left: the effect that has arrived by each day, relative to the mean of the arms, with bands that hold for all
# arms and days at once. An arm is named by the budgets of the three channels. On the first day the two arms with 1 for
# the second channel lead; a week later they are among the last three. Right: the bounds, and the regret simulated on
# the measured curves, for every d. With d = 0 a player learns the wrong arm. The longer d, the longer the blocks and
# the slower the learning, so that it does not pay to wait until the last difference has arrived. 20,000 rounds are too
# few for any of the bounds to say much, so the d is chosen whose bound is the first to fall below half of what the
# worst arm costs.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
curves.plot(left, names)
left.set_ylim(-0.23, 0.45)
left.legend(ncols=2, loc="upper right", title="budgets, with 95% bands")
choice.plot(right)
right.legend(loc="center right", bbox_to_anchor=(1, 0.62))
plt.show()

# %%
# The player
# ----------
#
# The player is told the proposed d, and begins with the whole effects that the pilot has shown. Six users do this, each
# with a pilot of their own and four runs after it. They are compared with uniform play, and with a player that was
# told d = 14 from the start, after which less than 1% of an effect is left.

whole = ADVERTISING.responses(40).sum(axis=0)
gaps = whole.max() - whole
marks = np.arange(200, T + 1, 200)
regrets = []
for seed in range(pilots):
    pilot = ae.carryover.Pilot(n_arms=K, rounds=600, max_lag=20, seed=seed)
    n = pilot.rounds
    curves = pilot.estimate(totals(pilot.arms, seed))
    d = ae.choose_delay(curves=curves, n_arms=K, horizon=T - n, **known).max_delay
    prior = ae.carryover.prior(curves, rounds=n, max_delay=d, **known)
    player = ae.default_player(K, max_delay=d, prior=prior, out_of_range="clip", **known)
    losses = system_rewards(ADVERTISING, max_delay=40, horizon=T - n, seed=pilots + seed)
    after = marks[marks > n] - n
    run = ae.simulate(player, losses, runs=4, seed=seed, checkpoints=after, progress=False)
    paid = gaps[pilot.arms].cumsum()
    regrets.append([*paid[marks[marks <= n] - 1], *(paid[-1] + run.pseudo_regrets.mean(axis=0))])
measured = np.array(regrets)

losses = system_rewards(ADVERTISING, max_delay=40, horizon=T, seed=0)
player = ae.default_player(K, max_delay=14, out_of_range="clip", **known)
sizes = {"runs": 48, "instances": 48, "checkpoints": marks, "progress": False}
told = ae.simulate(player, losses, **sizes).pseudo_regrets

# %%
# Improvement is what uniform play has more in regret. Pilot included, the users who measured improve more than the
# one who was told. The shaded rounds are the pilot; bands are 95% intervals.


def mean_and_error(values):
    """Return the mean over the first axis, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


uniform = gaps.mean() * marks
better, error = mean_and_error(uniform[-1] - measured[:, -1])
known_d, its_error = mean_and_error(uniform[-1] - told[:, -1])
share = better / known_d
spread = share * np.hypot(error / better, its_error / known_d)
print(f"Improvement over uniform play, relative to d = 14: {share:.2f} ± {spread:.2f}")

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(marks, uniform, "--", color="0.5", label="uniform play")
for label, runs in (("told d = 14", told), ("told nothing: pilot, then a player", measured)):
    mean, error = mean_and_error(runs)
    (line,) = ax.plot(marks, mean, label=label)
    ax.fill_between(
        marks, mean - 1.96 * error, mean + 1.96 * error, color=line.get_color(), alpha=0.2, lw=0
    )
ax.axvspan(0, n, color="0.9", lw=0, zorder=0)
ax.set(xlabel="day", ylabel="regret", xlim=(0, T), xticks=range(0, T + 1, 5_000))
ax.set_ylim(0)
ax.legend()
plt.show()
