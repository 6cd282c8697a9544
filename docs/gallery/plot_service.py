"""
Ask and tell against the service
================================

A server on this machine keeps the experiment. Every morning a shop asks which mailing to send, and every
evening it reports the number of orders, whatever mailing they came from. A letter brings more orders than an
email, but most of them two days later.
"""

import subprocess
import sys
import tempfile

import matplotlib.pyplot as plt

import aftereffect as ae

plt.style.use("aftereffect.figures")

orders = {"letter": [2, 8, 20], "email": [12, 3, 1]}  # on the day of the mailing, one day and two days later
days, arriving = 120, [0.0] * 123
with tempfile.TemporaryDirectory() as folder:
    # At a terminal: aftereffect serve
    command = [sys.executable, "-m", "aftereffect", "serve", "--port", "0", "--store", f"{folder}/shop.db"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        with ae.Client(address) as service:
            made = service.create(name="mailings", arms=list(orders), high=50, carry_over={"window": "2 days"}, seed=4)
            for day in range(1, days + 1):
                turn = service.ask(made.id)
                for later, number in enumerate(orders[turn.arm]):
                    arriving[day + later] += number
                service.tell(made.id, day, arriving[day])
            ended = service.finish(made.id)
            rows = service.rounds(made.id, limit=days).items
    finally:
        server.terminate()
        server.communicate(timeout=20)
print(ended.winner["words"])

# %%
# Top: the orders of each day, coloured by the mailing of that day. On the first two days after a change, many
# orders still come from the mailing before: 40 orders on a day with an email are not its merit. The service
# does not count such days. Bottom: the probability of the letter at the latest draw.

colours = {"letter": "C0", "email": "C1"}
fig, (top, bottom) = plt.subplots(2, 1, figsize=(7.6, 4.2), height_ratios=[3, 2], sharex=True, layout="constrained")
for arm, colour in colours.items():
    played = [row for row in rows if row.arm == arm]
    top.bar([row.round for row in played], [row.total for row in played], width=1.0, color=colour, label=arm)
top.set(ylabel="orders", xlim=(0.5, days + 0.5))
top.set_ylim(0, 50)
top.legend(ncols=2, loc="upper left")
letter = [row.probability if row.arm == "letter" else 1 - row.probability for row in rows]
bottom.step([row.round for row in rows], letter, where="mid", color="C0")
bottom.set(xlabel="day", ylabel="probability of letter", ylim=(0, 1))
plt.show()
