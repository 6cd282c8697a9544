"""Aftereffect: choose well when the effects of actions arrive late, spread over time and unlabelled.

arm = player.ask()
player.tell(total)        # play the arm, then report the total observed in that round
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from aftereffect.core import VERSION

__version__ = VERSION

# Public names are listed in `__init__.pyi`, for type checkers too, and imported on first access: this saves time, and
# names of `service` and `studies` need the extras of the same names.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2$", _STUB, re.MULTILINE)}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _HOMES[name]
    try:
        found = None if module == __name__ else getattr(import_module(module), name, None)
        found = found or import_module(f"{module}.{name}")
    except ModuleNotFoundError as error:
        extra = module.split(".")[1]
        if extra not in ("service", "studies"):
            raise
        # An AttributeError, so that hasattr and getattr with a default work where the extra is not installed.
        raise AttributeError(f"{__name__}.{name} needs {error.name}: pip install '{__name__}[{extra}]'") from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
