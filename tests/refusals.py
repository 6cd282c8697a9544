"""Tables of what is refused: every row is a case of one test."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from aftereffect.core.errors import AftereffectError, InvalidArgument


def refuses(
    rows: Iterable[tuple[Any, str]],
    call: Callable[[Any], object] = lambda make: make(),
    error: type[AftereffectError] = InvalidArgument,
    plain: bool = False,
) -> Callable[[Any, str], None]:
    """Return a test that `call` of each row's first entry raises an error with its words.

    Without `call`, the first entries are functions. Words are a regular expression, or plain text if so said.
    """

    @pytest.mark.parametrize(("given", "words"), rows)
    def test(given: Any, words: str) -> None:
        with pytest.raises(error, match=re.escape(words) if plain else words):
            call(given)

    return test
