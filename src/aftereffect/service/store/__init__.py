"""Where experiments are kept: an event log with its round rows, in SQLite or PostgreSQL.

    schema, migrating   the tables, brought up to date under a lock     places      connections for an address
    chain               hashes that tie each event to all before        locking     one process a SQLite file
    jobs, writer        commands in, durable answers out: group commit  troubles    what a database's errors mean
    ledger, batch       experiments in memory; what a transaction keeps statements  many rows with one statement
    loading, lookup     an experiment, or an old round, from the store  verifying   everything replayed and compared
    reading, replicas   committed pages and views; paging: cursors      presence    what is open is still what is there
    pulse               a trial write for those who watch               visiting    what can only be read
    dictation, scribe   a process of its own that writes long lists     backup, export, tokens
"""
