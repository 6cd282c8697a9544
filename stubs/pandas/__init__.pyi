from collections.abc import Mapping
from typing import Any

class DataFrame:
    def __init__(self, data: Mapping[str, Any] | None = ...) -> None: ...
