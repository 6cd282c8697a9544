"""Every error the library raises on purpose. All are `ValueError`s; each message names argument, rule and value."""


class AftereffectError(ValueError):
    """Base of all errors raised on purpose by this library."""


class InvalidArgument(AftereffectError):
    """An argument breaks its rule."""


class InvalidLosses(InvalidArgument):
    """Loss components, a table or a spread break the assumptions of Section 2 of the paper."""


class InvalidTotal(InvalidArgument):
    """A reported total is not a finite number, or lies outside what the range of one action's effect allows."""


class OutOfTurn(AftereffectError):
    """`tell` before `ask`, an amendment of a round whose block is closed, or the like."""


class CoinsExhausted(AftereffectError):
    """The Boolean sequence given as `coins` has ended."""


class BadDistribution(AftereffectError):
    """A base algorithm returned something that is not a probability distribution over its arms."""


class InvalidState(AftereffectError):
    """A saved state cannot be restored: unknown version or kind, a missing field, or an altered one."""
