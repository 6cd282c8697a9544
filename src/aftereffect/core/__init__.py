"""What everything else stands on: errors, checks, random streams, records, saved states, the kernel form."""

# First of all: the sources' fingerprint is taken before they can change under a running process.
from aftereffect.core import fingerprint

__all__ = ["fingerprint"]
