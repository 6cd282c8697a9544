"""What every other package uses.

kernel         the kernel form: an algorithm as functions over flat state
jit            compilation and its cache on disk         fingerprint    what the cache's folder is named by
random         random streams                            effects        the range of one action's effect
checks         checks of arguments                       errors         the errors they raise
saved          saved states and canonical JSON           text           numbers in sentences
"""

# First of all: the sources' fingerprint is taken before they can change under a running process.
from aftereffect.core import fingerprint

__all__ = ["VERSION", "fingerprint"]

VERSION = "0.2.0"
