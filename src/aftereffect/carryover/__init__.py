"""How long effects last, measured: a randomised pilot, and the effect of every arm by lag with simultaneous bands.

pilot            `Pilot` plans the rounds and says how wide the bands will be; `prior` for a player that begins after it
regression       `estimate`: the effects by lag, from a pilot, a player's own rounds or a record
effects_by_lag   `Curves`, the result of an estimate
delay            `choose_delay`: which d to tell a player
mix_models       curves of Meridian and PyMC-Marketing in, measured effects out
martingale       `watch`: a test whether effects last longer than a running player was told

docs/theory/carryover.md has the model, the estimator and the coverage that was measured, docs/theory/watch.md the test.
`estimate`, `Pilot.expected_width` and `Curves.longer_than` need the extra `carryover`.
"""

from aftereffect.carryover.effects_by_lag import Alike, Bands, Curves, Longer
from aftereffect.carryover.martingale import Block, Watch, blocks_of, watch
from aftereffect.carryover.mix_models import AdstockCurves, best_probabilities, lift_rows, meridian_curves, pymc_curves
from aftereffect.carryover.pilot import ExpectedWidth, Pilot, prior
from aftereffect.carryover.regression import estimate

__all__ = [
    "AdstockCurves", "Alike", "Bands", "Block", "Curves", "ExpectedWidth", "Longer", "Pilot", "Watch",
    "best_probabilities", "blocks_of", "estimate", "lift_rows", "meridian_curves", "prior", "pymc_curves", "watch"
]
