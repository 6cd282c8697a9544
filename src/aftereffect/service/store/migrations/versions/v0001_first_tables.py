"""The first tables: experiments, their events, rounds and checkpoints, and tokens.

The columns are written out here once more, and stay so: a step must do tomorrow what it did when it was released,
whatever has become of the schema since.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "experiments",
        sa.Column("number", _NUMBER, sa.Identity(), primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("experiment", _NUMBER, sa.ForeignKey("experiments.number"), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("round", sa.BigInteger),
        sa.Column("unit", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.UniqueConstraint("experiment", "seq", name="one_event_per_seq"),
    )
    op.create_table(
        "rounds",
        sa.Column("experiment", _NUMBER, sa.ForeignKey("experiments.number"), nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("unit_index", sa.Integer, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("arm", sa.Text, nullable=False),
        sa.Column("total", sa.Double),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("draw", sa.Boolean, nullable=False),
        sa.Column("block", sa.BigInteger, nullable=False),
        sa.Column("block_start", sa.BigInteger, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("washin", sa.Boolean, nullable=False),
        sa.Column("measured", sa.Boolean),
        sa.Column("update", sa.Boolean, nullable=False),
        sa.Column("fed", sa.Double),
        sa.Column("date", sa.String(32)),
        sa.Column("substituted", sa.Boolean, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("asked_at", sa.String(32)),
        sa.Column("told_at", sa.String(32)),
        sa.UniqueConstraint("experiment", "round", "unit_index", name="one_row_per_round_and_unit"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("experiment", _NUMBER, sa.ForeignKey("experiments.number"), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("revoked_at", sa.String(32)),
    )
