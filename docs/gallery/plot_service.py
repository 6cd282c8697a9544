"""
Ask and tell against the service
================================

A server on this machine keeps the experiment. Every morning a shop asks which mailing to send, and every
evening it reports the number of orders, whatever mailing they came from. A letter brings more orders than an
email, but most of them two days later. Nobody tells the service how long effects last.
"""

import subprocess
import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import aftereffect as ae

plt.style.use("aftereffect.figures")

# Orders on the day of a mailing, one day and two days later; some ten orders a day come anyway.
orders = {"letter": [2, 8, 20], "email": [12, 3, 1]}
days = 120
arriving = np.random.default_rng(3).normal(10, 4, days + 2).round()


def season(service: ae.Client) -> str:
    """Create an experiment, play it to its end, and return its id."""
    made = service.create(name="mailings", arms=list(orders), seed=3)
    for day in range(1, days + 1):
        mailing = service.ask(made.id).arm
        for later, number in enumerate(orders[mailing]):
            arriving[day - 1 + later] += number
        service.tell(made.id, day, arriving[day - 1])
    return made.id


with tempfile.TemporaryDirectory() as folder:
    # At a terminal: aftereffect serve --store shop.db
    command = [sys.executable, "-m", "aftereffect", "serve", "--port", "0"]
    command += ["--store", f"{folder}/shop.db"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        address = server.stdout.readline().decode().split()[-1]
        with ae.Client(address) as service:
            name = season(service)
            rows = service.rounds(name, limit=days).items
            service.finish(name)
            print(" ".join(service.learned(name).sentences))
    finally:
        server.terminate()
        server.communicate(timeout=20)

# %%
# Top: the orders of each day, coloured by the mailing of that day. The orders of a letter come mostly two days after
# it, so that the first day with a letter has the fewest of all. The model of all totals is not misled by that.
# Bottom: how probable it was that the letter is the better one when an arm was last chosen.

size = {"figsize": (7.6, 4.2), "layout": "constrained"}
fig, (top, bottom) = plt.subplots(2, 1, sharex=True, **size)
for arm, colour in (("letter", "C0"), ("email", "C1")):
    totals = {row.round: row.total for row in rows if row.arm == arm}
    top.bar(totals.keys(), totals.values(), width=1, color=colour, label=arm)
top.set(ylabel="orders", xlim=(0.5, days + 0.5), ylim=(0, 60))
top.legend(ncols=2, loc="upper left")
chances = [
    row.probability if row.arm == "letter" else 1 - row.probability for row in rows
]
bottom.step(range(1, days + 1), chances, where="mid", color="C0")
bottom.set(xlabel="day", ylabel="letter is better", ylim=(0, 1))
plt.show()
