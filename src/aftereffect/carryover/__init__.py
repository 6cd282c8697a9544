"""How long effects last, measured: a randomised pilot, and the effect of every arm by lag with simultaneous bands.

`pilot` plans the rounds and says how wide the bands will be; `regression` estimates. docs/theory/carryover.md has the
model, the estimator and the coverage that was measured. Needs the extra `carryover`.
"""

from aftereffect.carryover.pilot import ExpectedWidth, Pilot
from aftereffect.carryover.regression import Alike, Bands, Curves, estimate

__all__ = ["Alike", "Bands", "Curves", "ExpectedWidth", "Pilot", "estimate"]
