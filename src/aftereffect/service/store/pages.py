"""A batch of commands on its way: carried out in memory, with answers that nobody has heard yet."""

from collections.abc import Sequence

from aftereffect.service.store.batch import Batch
from aftereffect.service.store.jobs import Answer, Item, Work


class Fault(Exception):
    """An item made the domain fail in a way it does not know; its experiment may be half changed."""

    def __init__(self, index: int) -> None:
        """Name the item."""
        super().__init__(index)
        self.index = index


class Page:
    """A batch of items that have been carried out in memory, with their answers, to be kept or thrown away."""

    def __init__(self, items: Sequence[Item]) -> None:
        """Begin with nothing carried out."""
        self.items = items
        self.batch = Batch()
        self.answers: list[Answer] = []

    @property
    def writes(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.batch.touched) or any(isinstance(command, Work) for _, command in self.items)
