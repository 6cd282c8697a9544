"""While a long list is run, some hundredths of a second: no garbage collection, and threads that take turns sooner.

Every collection would walk through all experiments in memory; and the threads that hand portions over, or answers back,
need the interpreter only for a moment, but would wait five milliseconds each time. Both are the whole process's: the
first list that begins sets them, and the last one that ends sets them back, whatever stores they are of.
"""

import gc
import sys
import threading

SWITCH_S = 0.0003


class Haste:
    """To be entered by whoever is in a hurry, by several at a time if need be."""

    def __init__(self) -> None:
        """Be in no hurry."""
        self._gate = threading.Lock()
        self._hurried = 0
        self._usual = True, SWITCH_S

    def __enter__(self) -> None:
        """Hurry."""
        with self._gate:
            self._hurried += 1
            if self._hurried == 1:
                self._usual = gc.isenabled(), sys.getswitchinterval()
                gc.disable()
                sys.setswitchinterval(min(SWITCH_S, self._usual[1]))

    def __exit__(self, *_: object) -> None:
        """Hurry no more, if nobody else does."""
        with self._gate:
            self._hurried -= 1
            if self._hurried == 0:
                collecting, interval = self._usual
                sys.setswitchinterval(interval)
                if collecting:
                    gc.enable()


in_a_hurry = Haste()
