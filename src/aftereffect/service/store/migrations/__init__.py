"""Alembic migrations: the steps that upgrade the tables of one release to those of the next. Run by `schema.py`."""
