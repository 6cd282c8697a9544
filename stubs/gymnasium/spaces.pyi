from typing import Any

class Discrete:
    def __init__(self, n: int) -> None: ...

class Box:
    def __init__(self, low: float, high: float, shape: tuple[int, ...], dtype: Any) -> None: ...
