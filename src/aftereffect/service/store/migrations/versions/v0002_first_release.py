"""The tables of the first release, where upgrades begin.

An empty database gets its tables from `schema.metadata`, not by steps. A change of the schema needs a step after this
one, which brings a store of this version to the new one.
"""

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Do nothing: a store of this version has its tables."""
