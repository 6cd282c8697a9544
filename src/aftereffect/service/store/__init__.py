"""Where experiments are kept: an event log with its round rows, in SQLite or PostgreSQL.

    schema      the tables                              loading     an experiment from its checkpoint and log
    places      engines for a store's address           writer      the one thread that writes: group commit
    migrating   tables brought up to date, under a lock reading     pages, series; replicas: committed views
    locking     one process a SQLite file               verifying   the log replayed and compared bit for bit
    chain       hashes that tie each event to all before  backup, export, tokens
"""
