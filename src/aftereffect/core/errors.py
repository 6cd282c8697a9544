"""The errors that the library raises on purpose, and its warning.

All errors are `ValueError`s; messages name argument, rule and value.
"""


class AftereffectError(ValueError):
    """Base class of all errors that this library raises on purpose."""


class AftereffectWarning(UserWarning):
    """What was asked for can be done, but is probably not what was meant."""


class InvalidArgument(AftereffectError):
    """An argument violates its rule."""


class InvalidLosses(InvalidArgument):
    """Loss components, a table or a spread violate the assumptions of Section 2 of the paper."""


class InvalidTotal(InvalidArgument):
    """A reported total is not a finite number, or lies outside what the range of one action's effect allows."""


class OutOfTurn(AftereffectError):
    """A call out of order, such as `tell` before `ask` or an amendment of a round whose block is closed."""


class CoinsExhausted(AftereffectError):
    """The Boolean sequence given as `coins` has ended."""


class BadDistribution(AftereffectError):
    """A base algorithm returned something that is not a probability distribution over its arms."""


class MissingExtra(AftereffectError, ImportError):
    """A package that only some functions need is not installed; the message names the extra that brings it."""


class InvalidState(AftereffectError):
    """A saved state cannot be restored: unknown version or kind, or a missing or altered field."""


class ExecutorBroken(AftereffectError):
    """A study's executor stopped working before all cells were finished; finished cells are stored, so run again."""
