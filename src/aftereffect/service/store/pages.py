"""A batch of commands on its way: carried out in memory, with answers that nobody has heard yet."""

from collections.abc import Collection, Sequence
from sqlite3 import Cursor

from aftereffect.service.store import statements
from aftereffect.service.store.batch import Batch
from aftereffect.service.store.dictation import Script
from aftereffect.service.store.jobs import Form, Item, Outcome, Work


class Fault(Exception):
    """An item made the domain fail in a way it does not know; its experiment may be half changed."""

    def __init__(self, index: int) -> None:
        """Name the item."""
        super().__init__(index)
        self.index = index


class Page:
    """A batch of items that have been carried out in memory, with their answers, to be kept or thrown away.

    form: the form of the answers. batch: what the items did. script: where that is put, little by little, if it is to
    be written by a process of its own; rows: how many rows it makes; on_their_way: the ids of its experiments.
    """

    def __init__(self, items: Sequence[Item], form: Form | None, script: Script | None = None) -> None:
        """Begin with nothing carried out."""
        self.items, self.form = items, form
        self.batch = Batch()
        self.answers: list[Outcome] = []
        self.script, self.rows = script, 0
        self.on_their_way: set[str] = set()

    @property
    def touched(self) -> Collection[str]:
        """The ids of the experiments that are further in memory than in the store."""
        return self.on_their_way.union(self.batch.touched) if self.on_their_way else self.batch.touched

    @property
    def writes(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.touched) or any(isinstance(command, Work) for _, command in self.items)

    def seal(self) -> None:
        """Take down what was done so far and, if there is a script, set it down there."""
        self.batch.seal()
        if self.script is not None:
            self.rows += self.batch.write(self.script)
            self.on_their_way.update(self.batch.touched)
            self.batch = Batch()

    def write(self, connection: Cursor) -> None:
        """Write all of it inside a transaction of this process."""
        if self.script is None:
            self.rows = self.batch.write(connection)
        else:
            statements.play(connection, self.script)
