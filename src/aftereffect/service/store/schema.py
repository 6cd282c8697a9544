"""The tables of a store.

    experiments   one row each: settings, how far its log goes (seq) and the hash of its last event (head)
    events        the log: what was asked and told, in order, gapless in seq, each tied to the one before by hash
    rounds        one row per round and unit, as people read it; it follows from the log
    checkpoints   the latest saved state of an experiment, with the place in the log it was taken at
    tokens        who may come in; only the hash of a token is kept

People and programs know an experiment by its id, which nobody can guess; inside, rows know it by its number, which
is short, and so are the indexes. Bodies and states are text, not a database's own JSON type: what was hashed is what
comes back, to the letter.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

# SQLite numbers rows by itself only where the key is plainly INTEGER.
_Number = BigInteger().with_variant(Integer(), "sqlite")

experiments = Table(
    "experiments",
    metadata,
    Column("number", _Number, Identity(), primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("head", String(64), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("settings", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("experiment", _Number, ForeignKey("experiments.number"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("round", BigInteger),
    Column("unit", Text),
    Column("body", Text, nullable=False),
    Column("at", String(32), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("experiment", "seq", name="one_event_per_seq"),
)

rounds = Table(
    "rounds",
    metadata,
    Column("experiment", _Number, ForeignKey("experiments.number"), nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("unit_index", Integer, nullable=False),
    Column("unit", Text, nullable=False),
    Column("arm", Text, nullable=False),
    Column("total", Double),
    Column("status", String(16), nullable=False),
    Column("draw", Boolean, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("block_start", BigInteger, nullable=False),
    Column("probability", Double, nullable=False),
    Column("washin", Boolean, nullable=False),
    Column("measured", Boolean),
    Column("update", Boolean, nullable=False),
    Column("fed", Double),
    Column("date", String(32)),
    Column("substituted", Boolean, nullable=False),
    Column("why", Text, nullable=False),
    Column("asked_at", String(32)),
    Column("told_at", String(32)),
    UniqueConstraint("experiment", "round", "unit_index", name="one_row_per_round_and_unit"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("experiment", _Number, ForeignKey("experiments.number"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("head", String(64), nullable=False),
    Column("state", Text, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("created_at", String(32), nullable=False),
    Column("revoked_at", String(32)),
)

# The order in which tables can be filled: a row's experiment comes before it; those of the record, then tokens.
TABLES = (experiments, events, rounds, checkpoints, tokens)

ROUND_COLUMNS = tuple(column.name for column in rounds.columns)
# What a row of the domain holds beside its key.
ROW_FIELDS = ROUND_COLUMNS[3:]
