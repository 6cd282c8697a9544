"""The decision service without a server: an experiment of 120 days, stored in a file.

A shop sends a letter or an email every day. Letters bring more orders, but mostly two days later; the shop sees only
the total of each day. Run it: python examples/service_tour.py. At a terminal: aftereffect init, ask, tell, status.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     seen, learned = season(folder + "/shop.db", days=120)
>>> seen.round, seen.state, seen.counts["missing"]
(120, 'finished', 2)
>>> learned.leader, learned.sure           # although a letter brings little on its own day
('letter', 'certain')
"""

import tempfile
from collections import deque

import aftereffect as ae
from aftereffect.service.messages import Learned, Overview

# Orders that a mailing brings on its own day and on the next two.
ORDERS = {"letter": (2.0, 8.0, 20.0), "email": (12.0, 3.0, 1.0)}
NO_REPORT = (40, 77)


def season(store: str, days: int) -> tuple[Overview, Learned]:
    """Play an experiment from start to end, verify its log, and return its final state and what it has learned."""
    arriving = deque([0.0, 0.0, 0.0])
    with ae.Local.open(store) as service:
        made = service.create(
            name="mailings",
            arms=list(ORDERS),
            high=50.0,
            carry_over={"window": "2 days"},
            start_date="2026-03-02",
            seed=4,
        )
        for day in range(1, days + 1):
            turn = service.ask(made.id)
            for later, orders in enumerate(ORDERS[turn.arm]):
                arriving[later] += orders
            total = arriving.popleft()
            arriving.append(0.0)
            service.tell(made.id, day, None if day in NO_REPORT else total)
        ended = service.finish(made.id)
        learned = service.learned(made.id)
        (verdict,) = service.verify(made.id)
    if not verdict.ok:
        raise RuntimeError(f"a replay of the log must give the stored state, but {verdict.finding}")
    return ended, learned


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found, said = season(folder + "/shop.db", days=120)
    for arm in found.arms:
        print(f"{arm:8} played {found.plays[arm]:3} times, probability now {found.probabilities[arm]:.2f}")
    print(" ".join(said.sentences))
    print(found.guarantee.words)
