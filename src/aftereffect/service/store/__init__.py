"""Storage of experiments: an event log and the round rows derived from it, in SQLite or PostgreSQL.

    store        `Store`: all operations on the experiments of one database
    writer       one thread carries out commands and commits them in groups
    event_log    the hash chain, experiments loaded from the log, events appended to it
    database     connections, transactions, and the translation of database errors
    sqlite_file  the lock on a SQLite file, checks that it is still the same file, WAL checkpoints
    schema       the tables, and how they are created and upgraded
    reads, verify, backup, tokens, keys, webhooks
"""
