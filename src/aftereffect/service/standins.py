"""Arms that are away, and who is played in their place; `progress.py` says what the learner makes of it.

The stand-in is drawn from the learner's probabilities among the arms that are there, by a number that depends on
seed, block and unit alone: it is the same for a whole block, and the same again when the log is replayed.
"""

import hashlib
from collections.abc import Collection, Sequence


def stand_in(
    seed: int, block_start: int, unit: int, probabilities: Sequence[float], away: Collection[int]
) -> tuple[int, float]:
    """Return an arm that is there, and the probability it was chosen with."""
    present = [i for i in range(len(probabilities)) if i not in away]
    whole = sum(probabilities[i] for i in present)
    # A learner that has all but given up on every arm that is there leaves no shares to go by.
    shares = [probabilities[i] / whole if whole > 0.0 else 1.0 / len(present) for i in present]
    words = hashlib.sha256(f"stand-in:{seed}:{block_start}:{unit}".encode()).digest()
    left = int.from_bytes(words[:6], "big") / 2**48
    for arm, share in zip(present, shares, strict=True):
        if left < share:
            return arm, share
        left -= share
    return present[-1], shares[-1]
