from collections.abc import Callable
from typing import Any, TypeVar

from numba import config as config

_F = TypeVar("_F", bound=Callable[..., Any])

__version__: str

def njit(function: _F, **options: object) -> _F: ...
def typeof(value: object) -> Any: ...
