"""What a simulation found: regret per run, curves, pictures, tables, and paired comparisons."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.plan import Blocks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Half the width of a 95% normal interval, in standard errors.
Z95 = 1.959963984540054


class Curve(NamedTuple):
    """Mean regret after so many rounds, with a 95% normal interval for the mean."""

    rounds: NDArray[np.int64]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Difference(NamedTuple):
    """Mean of paired differences in regret (first minus second), its standard error, and a 95% normal interval."""

    mean: float
    standard_error: float
    low: float
    high: float


def standard_error(values: FloatArray) -> Any:
    """Return the standard error of the mean over the first axis; NaN for a single run, which has none."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)[()]
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Many runs of one player on one loss sequence (or on several draws of one).

    engine: which engine ran. rounds: the checkpoints. regrets: (runs, checkpoints), each against the best arm
    of that prefix. pseudo_regrets: the same for Σ_t (μ(I_t) − μ*), None where the losses do not know their
    means. updates: (runs,). arm_sums: (instances, K), what always playing each arm adds up to. uniform_regrets:
    (instances, checkpoints), the expected regret of uniform play. traces, states: the blocks of every run and its
    base's last state in kernel form, if asked for.
    """

    engine: str
    player: str
    n_arms: int
    max_delay: int
    rounds: NDArray[np.int64]
    regrets: FloatArray
    pseudo_regrets: FloatArray | None
    updates: NDArray[np.int64]
    arm_sums: FloatArray
    uniform_regrets: FloatArray
    seed: int
    traces: list[Blocks] | None = field(default=None, repr=False)
    states: FloatArray | None = field(default=None, repr=False)

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.regrets)

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.rounds[-1])

    @property
    def regret(self) -> FloatArray:
        """The regret of every run after T rounds; the mean over runs estimates R_T of Section 2."""
        return self.regrets[:, -1]

    @property
    def pseudo_regret(self) -> FloatArray:
        """Σ_t (μ(I_t) − μ*) of every run; an error if the losses do not know their means."""
        if self.pseudo_regrets is None:
            raise InvalidArgument("losses must know their means for a pseudo-regret, but means is None")
        return self.pseudo_regrets[:, -1]

    @property
    def mean_regret(self) -> float:
        """The mean regret over runs."""
        return float(self.regret.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of `mean_regret`."""
        return float(standard_error(self.regret))

    @property
    def curve(self) -> Curve:
        """Mean regret at the checkpoints, with a 95% normal interval."""
        mean, half = self.regrets.mean(axis=0), Z95 * standard_error(self.regrets)
        return Curve(self.rounds, mean, mean - half, mean + half)

    def quantiles(self, levels: ArrayLike) -> FloatArray:
        """Return quantiles over runs at the checkpoints, shape (levels, checkpoints)."""
        wanted = checks.array("levels", levels, shape=("any",))
        if wanted.size and (wanted.min() < 0.0 or wanted.max() > 1.0):
            raise InvalidArgument(f"levels must lie in [0, 1], but got {checks.shown(levels)}")
        result: FloatArray = np.quantile(self.regrets, wanted, axis=0)
        return result

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per run and checkpoint, as a pandas frame (extra `frames`)."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas, or 'aftereffect[frames]'") from None

        runs, points = self.regrets.shape
        columns: dict[str, Any] = {
            "run": np.repeat(np.arange(runs), points),
            "round": np.tile(self.rounds, runs),
            "regret": self.regrets.ravel(),
        }
        if self.pseudo_regrets is not None:
            columns["pseudo_regret"] = self.pseudo_regrets.ravel()
        return pd.DataFrame(columns)

    def plot(self, ax: "Axes | None" = None, label: str | None = None, **style: Any) -> "Axes":
        """Draw the mean regret curve with its 95% band; return the axes (without `ax`, of a new pyplot figure)."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
        rounds, mean, low, high = self.curve
        (line,) = ax.plot(rounds, mean, label=label or self.player.partition("(")[0], **style)
        ax.fill_between(rounds, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xlabel("round")
        ax.set_ylabel("regret")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax

    def __repr__(self) -> str:
        """Say what was run and what came out."""
        spread = "" if self.runs < 2 else f" ± {self.standard_error:.2g}"
        return (
            f"Simulation({self.player}: regret {self.mean_regret:.6g}{spread} after {self.horizon} rounds, "
            f"{self.runs} runs with seed {self.seed}, engine {self.engine!r})"
        )


def compare(first: Simulation, second: Simulation) -> Difference:
    """Compare two players run by run on common random numbers.

    Run r of both simulations has the same streams for the same seed, so their regrets go up and down together
    and the difference is known better than either mean.
    """
    for argument, value in (("first", first), ("second", second)):
        if not isinstance(value, Simulation):
            raise InvalidArgument(f"{argument} must be a Simulation, but got {checks.shown(value)}")
    for name in ("seed", "runs", "horizon", "n_arms", "max_delay"):
        a, b = getattr(first, name), getattr(second, name)
        if a != b:
            raise InvalidArgument(f"second must have the {name} of first, {a}, but got {b}")
    # Engines add up in different orders: the same losses agree to rounding.
    if first.arm_sums.shape != second.arm_sums.shape or not np.allclose(first.arm_sums, second.arm_sums, rtol=1e-9):
        raise InvalidArgument("second must have been run on the losses of first, but its arms have other sums")
    differences = first.regret - second.regret
    mean, error = float(differences.mean()), float(standard_error(differences))
    return Difference(mean, error, mean - Z95 * error, mean + Z95 * error)
