"""The steps that lead from each release's tables to the next, for Alembic; `schema.py` runs them."""
