"""Notes on rounds, and reminders of rounds that wait for a report."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column `note` to rounds, and the table of reminders."""
    op.add_column("rounds", sa.Column("note", sa.Text))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "reminders",
        sa.Column("experiment", number, sa.ForeignKey("experiments.number"), primary_key=True),
        sa.Column("webhook", sa.Text, nullable=False),
        sa.Column("after", sa.Double, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.String(32)),
        sa.Column("outcome", sa.Text),
        sa.Column("outcome_at", sa.String(32)),
    )
