"""Modules that every other package uses.

kernel         the kernel form: an algorithm as functions over flat state
jit            compilation and its cache on disk         fingerprint    the hash that names the cache folder
random         random streams                            real           logarithm, exponential, normal distribution
effects        the range of one action's effect
checks         checks of arguments                       errors         the errors they raise
saved          saved states and canonical JSON           text           numbers in sentences
"""

# Imported first: the fingerprint must be taken before the source files can change while the process runs.
from aftereffect.core import fingerprint

__all__ = ["VERSION", "fingerprint"]

VERSION = "0.3.0"
