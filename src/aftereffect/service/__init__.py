"""The decision service: ask for the arm of the round, report the total of the round.

experiment/  the domain: commands in, answers and events out, no I/O     settings, messages   what goes in and out
store/       durability: the event log in SQLite or PostgreSQL           errors, config       refusals, configuration
api/         the REST API and the server                                 protocol             what both of these offer:
dashboard/   the pages                                                   client, local        by HTTP, on a database
cli/         the commands                                                demo                 a year of simulated data
"""
