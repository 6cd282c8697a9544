"""A rehearsal on your own history: what would have become of three kinds of mailing?

`mailings.csv` (made up) says for 40 weeks what a letter, an email and a leaflet brought in their own week and in the
three that followed. 40 rounds are too few to learn from, so 20,000 are drawn from the recorded plays.
Run it: python examples/backtest.py, or at a terminal: aftereffect backtest examples/mailings.csv --resample 20000

>>> scores = {score.name: score for score in rehearsal(rounds=20_000, runs=20).scores()}
>>> list(scores)[0]                               # letters bring most, and late
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
    """Let the default players loose on rounds drawn from the file."""
    return play(read_history(FILE), resample=rounds, runs=runs, seed=1)


if __name__ == "__main__":
    found = rehearsal(rounds=20_000, runs=100)
    print(*found.remarks(), sep="\n")
    for score in found.scores():
        print(f"{score.name:30} {score.outcome:14,.0f}")
    print(found.verdict())
