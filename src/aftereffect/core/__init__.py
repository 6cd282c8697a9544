"""What everything else stands on: errors, checks, random streams, saved states, text, the kernel form."""

# First of all: the sources' fingerprint is taken before they can change under a running process.
from aftereffect.core import fingerprint

__all__ = ["VERSION", "fingerprint"]

VERSION = "0.1.0"
