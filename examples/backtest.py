"""A backtest on a recorded history: which of three kinds of mailing is best?

`mailings.csv` (made-up data) has, for 40 weeks, the sales of a letter, an email and a leaflet in the week of the
mailing and the three weeks after it. 40 rounds are too few to learn from, so 20,000 are drawn from the recorded plays.
Run it: python examples/backtest.py, or at a terminal: aftereffect backtest examples/mailings.csv --resample 20000

>>> scores = {score.name: score for score in rehearsal(rounds=20_000, runs=20).scores()}
>>> list(scores)[0]                               # letters sell most, but late
'always letter (the best arm)'
>>> naive, blind = scores["naive Exp3"].outcome, scores["uniform play"].outcome
>>> naive < blind < scores["wrapper, Tsallis FTRL"].outcome
True
"""

from pathlib import Path

from aftereffect.studies.backtest import Backtest, play
from aftereffect.studies.histories import read_history

FILE = Path(__file__).with_name("mailings.csv")


def rehearsal(rounds: int, runs: int) -> Backtest:
    """Simulate the default players on rounds drawn from the file."""
    return play(read_history(FILE), resample=rounds, runs=runs, seed=1)


if __name__ == "__main__":
    found = rehearsal(rounds=20_000, runs=100)
    print(*found.remarks(), sep="\n")
    for score in found.scores():
        print(f"{score.name:30} {score.outcome:14,.0f}")
    print(found.verdict())
