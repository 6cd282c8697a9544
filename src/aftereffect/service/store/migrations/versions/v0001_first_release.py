"""The tables of the first release: the base of all upgrades.

An empty database gets its tables from `schema.metadata`, not from these steps. A change of the schema needs a new step
after this one, which upgrades a store from this version.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: a store of this version already has its tables."""
