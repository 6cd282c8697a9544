"""How long effects last, measured: a randomised pilot, and the effect of every arm by lag with simultaneous bands.

`pilot` plans the rounds and says how wide the bands will be; `regression` estimates `Curves`, a class of
engines/effects_by_lag.py, since `choose_delay` reads it. docs/theory/carryover.md has the model, the estimator and the
coverage that was measured. Needs the extra `carryover`. While a player runs, `martingale` tests whether effects last
longer than it was told (docs/theory/watch.md), and `wash_in` tabulates totals by the rounds since a change of arm.
"""

from aftereffect.carryover.martingale import Block, Watch, blocks_of, watch
from aftereffect.carryover.pilot import ExpectedWidth, Pilot, prior
from aftereffect.carryover.regression import estimate
from aftereffect.carryover.wash_in import WashIn, wash_in
from aftereffect.engines.effects_by_lag import Alike, Bands, Curves, Longer

__all__ = [
    "Alike",
    "Bands",
    "Block",
    "Curves",
    "ExpectedWidth",
    "Longer",
    "Pilot",
    "WashIn",
    "Watch",
    "blocks_of",
    "estimate",
    "prior",
    "wash_in",
    "watch",
]
