"""What a first round needs, loaded, or compiled, before anybody waits for it.

Loading takes half a second; compiling, on a machine's first day, takes some. A server does it before it answers, a
command before it takes the lock of a file that others may be waiting for.
"""

from typing import Any

from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.settings import checked_settings

_LEARNERS: tuple[dict[str, Any], ...] = ({}, {"player": "paper", "horizon": 100})
_AT = "2026-01-01T00:00:00Z"


def warm_up() -> None:
    """Play a round in memory with each learner."""
    for learner in _LEARNERS:
        given = {"name": "warm-up", "arms": ["a", "b"], "max_delay": 0, "seed": 1, **learner}
        experiment = Experiment(checked_settings(given))
        experiment.do(Ask(), _AT)
        experiment.do(Tell(1, 0.5), _AT)
        Experiment.from_state(experiment.state()).view()
