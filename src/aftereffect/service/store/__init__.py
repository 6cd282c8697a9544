"""Where experiments are kept: an event log with its round rows, in SQLite or PostgreSQL.

    store        `Store`: everything that can be done with the experiments of one database
    writer       one thread carries out commands and commits them in groups
    event_log    hash chain; an experiment loaded from its log; what a transaction appends
    database     engines and transactions; what a database's errors mean
    sqlite_file  the lock on a SQLite file, checks that it is still the same file, WAL checkpoints
    schema       the tables, created and upgraded by the steps in migrations/
    reads, export, verify, backup, tokens, health
"""
