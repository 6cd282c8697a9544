"""
The certificate as it runs
==========================

While it plays, the default player computes a certificate: a number whose mean is at least its expected
regret. Here it is read along one run and compared with the regret of that run, which a player cannot see.
"""

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

T, d = 100_000, 3
table = ae.tables.iid(T, means=[0.2, 0.5, 0.5], seed=1)
losses = ae.spreads.random_split(table, max_delay=d, seed=2)
player = ae.default_player(n_arms=3, max_delay=d, seed=0)
rounds = np.unique(np.geomspace(20, T, 60).astype(int))

world, loss, paid, certificates = losses.stream(), 0.0, [], []
for t in range(1, T + 1):
    total = world.play(player.ask())
    player.tell(total)
    loss += total
    if t in rounds:
        paid.append(loss)
        certificates.append(player.certificate())
best = losses.arm_totals().cumsum(axis=0)[rounds - 1].min(axis=1)

# %%
# Left: the certificate is below the trivial bound, the number of rounds, from the first round shown, 20, on. The worst
# case, which holds for all losses, takes some 2,200 rounds. The regret of this run stays below its certificate, as
# it should on average, though not in every run. Right: the terms that add up to the certificate. The spikes
# are blocks that have not ended yet.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="constrained")
worst = [certificate.worst_case for certificate in certificates]
value = [certificate.value for certificate in certificates]
left.plot(rounds, worst, color="C1", label="worst case over all losses")
left.plot(rounds, value, color="C0", lw=2.5, label="certificate")
left.plot(rounds, rounds, color="0.75", lw=3, zorder=1, label="trivial bound")
left.plot(rounds, paid - best, color="C2", label="regret of this run")
left.set(xscale="log", yscale="log", xlabel="round", ylabel="regret or bound")
left.set_ylim(1)
left.legend()
names = [name for name in certificates[0].terms if name != "missing"]
terms = [[each.terms[name] for each in certificates] for name in names]
right.stackplot(rounds, terms, labels=names)
right.set(xscale="log", xlabel="round", ylabel="terms of the certificate")
right.set(xlim=(rounds[0], T), ylim=(0, 220))
right.legend(loc="upper left", ncols=3)
plt.show()
