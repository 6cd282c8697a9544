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
marks = np.unique(np.geomspace(20, T, 60).astype(int))

world, spent, certificates, paid = losses.stream(), 0.0, [], []
for t in range(1, T + 1):
    total = world.play(player.ask())
    player.tell(total)
    spent += total
    if t in marks:
        certificates.append(player.certificate())
        paid.append(spent)
regret = np.array(paid) - losses.arm_totals().cumsum(axis=0)[marks - 1].min(axis=1)

# %%
# Left: the certificate is below the trivial bound, the number of rounds, from about round 60 on. The worst
# case, which holds for all losses, takes 2,448 rounds. The regret of this run stays below its certificate, as
# it should on average, though not in every run. Right: the terms that add up to the certificate.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="constrained")
left.plot(marks, [c.worst_case for c in certificates], color="C1", label="worst case over all losses")
left.plot(marks, [c.value for c in certificates], color="C0", lw=2.5, label="certificate")
left.plot(marks, [c.trivial for c in certificates], color="0.75", lw=3, zorder=1, label="trivial bound")
left.plot(marks, regret, color="C2", label="regret of this run")
left.set(xscale="log", yscale="log", xlabel="round", ylabel="regret or bound", ylim=(1, None))
left.legend()
names = [name for name in certificates[0].terms if any(c.terms[name] > 0.0 for c in certificates)]
right.stackplot(marks, [[c.terms[name] for c in certificates] for name in names], labels=names, alpha=0.85)
right.set(xscale="log", xlabel="round", ylabel="terms of the certificate", xlim=(marks[0], T), ylim=(0, 200))
right.legend(loc="upper left", ncols=3)
plt.show()
print(certificates[-1])
