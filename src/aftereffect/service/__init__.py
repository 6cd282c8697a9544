"""The decision service: ask for the arm of the round, report the total of the round.

experiment/  the domain: commands in, answers and events out, no I/O     settings, messages   request and reply models
store/       durability: the event log in SQLite or PostgreSQL           errors, config       refusals, configuration
api/         the REST API and the server                                 protocol             the interface of both:
dashboard/   the web pages                                               client, local        over HTTP, on a database
cli/         the command line                                            demo                 a year of simulated data
lag_estimates  how long effects last: a max_delay to accept, and whether effects last longer than the one in force
"""
