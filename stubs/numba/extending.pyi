from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

def overload(
    function: Callable[..., Any],
    jit_options: Mapping[str, object] = ...,
    strict: bool = ...,
    inline: str = ...,
    prefer_literal: bool = ...,
    *,
    target: str = ...,
) -> Callable[[_F], _F]: ...
