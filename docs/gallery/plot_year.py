"""
One year of days
================

A shop sends one of four mailings a day. Their effects last for up to two weeks and fade at different speeds, the sales
of a day vary by as much as the best mailing is ahead, and the shop sees one number a day. What is lost after a year?
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

year = ae.year(seed=1)
told = {"direction": "maximize", "low": year.low, "high": year.high}
players = {
    "default player": ae.default_player(4, max_delay=14, **told),
    "A/B test": ae.rivals.ABTest(4, test_rounds=91, hold=11, **told),
    "LagPlayer": ae.LagPlayer(4, direction="maximize"),
}


def best_sent(player) -> np.ndarray:
    """Let a player choose for a year; return the days on which it sent the best mailing."""
    sales, arms = year.stream(), []
    for _ in range(year.horizon):
        arms.append(player.ask())
        player.tell(sales.play(arms[-1]))
    return 1 + np.flatnonzero(np.array(arms) == year.best_arm())


# %%
# Above: one year; a line is a day on which the best mailing was sent. LagPlayer tries single days and short holds,
# learns from every day by a model of the whole record, and soon sends little else than the best. The A/B test sends
# each mailing for eleven days in turn, for a quarter of the year, then the one with the largest mean for good. The
# default player learns once in a block of some 50 days, the price of a guarantee for all effects that are fixed in
# advance: for that a year is too short. With ``adviser="lags"`` it would let LagPlayer's model choose at first, which
# here is nearly all of the year, and lose little more than LagPlayer does.
#
# Below: what has been lost against always sending the best mailing, on average over 40 years with noise of their own.
# LagPlayer assumes that effects add up and follow the same curve each time, which is so here.

fig, axes = plt.subplots(2, 1, figsize=(7.6, 5.6), layout="constrained", sharex=True, height_ratios=[1, 2])
for place, (name, player) in enumerate(players.items()):
    colour = ("C0", "C3", "C1")[place]
    axes[0].vlines(best_sent(player.fresh(seed=1)), place - 0.4, place + 0.4, color=colour, lw=1.0)
    found = ae.simulate(player, year, runs=40, instances=40, seed=2, progress=False)
    found.plot(axes[1], name, color=colour)
axes[1].plot(found.rounds, found.uniform_regrets.mean(axis=0), color="0.5", ls="--", label="equal split of all days")
axes[0].set_yticks(range(len(players)), labels=players)
axes[0].set(title="days on which the best mailing was sent", ylim=(-0.6, len(players) - 0.4))
axes[0].grid(visible=False)
axes[1].set(xlabel="day", ylabel="lost against the best mailing", xlim=(0, year.horizon), ylim=(0, None))
axes[1].legend(loc="upper left")
plt.show()
