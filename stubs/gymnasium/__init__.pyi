from typing import Any, Generic, TypeVar

import numpy as np

Observation = TypeVar("Observation")
Action = TypeVar("Action")

registry: dict[str, Any]

class Env(Generic[Observation, Action]):
    action_space: Any
    observation_space: Any
    np_random: np.random.Generator
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]: ...
    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]: ...

def register(id: str, entry_point: str) -> None: ...
