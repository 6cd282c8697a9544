"""The domain logic of experiments, without clock, network or database: commands in; answers, events and rows out.

experiment    Experiment: ask, tell, amend, ...         commands  the commands as values
state         its state, saved and restored             learner   the player that belongs to the settings
round         a round, and its row in the record        learned   what all totals say about the arms
plan          what to expect of settings                view      the summary shown to users, with the guarantee
"""
