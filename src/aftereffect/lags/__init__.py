"""The lag model: what every total says about the effects of arms, whoever chose them."""

from aftereffect.lags.model import Effects, Estimate, Finding, LagModel

__all__ = ["Effects", "Estimate", "Finding", "LagModel"]
