"""The domain logic of experiments, without clock, network or database: commands in; answers, events and rows out.

experiment    Experiment: ask, tell, amend, start, accept, pause, resume, away, back, finish
commands      the commands as values                    state      the state of an experiment, saved and restored
round         a round, and its row with the "why"       learner    the player that belongs to the settings
plan          what to expect of settings                guarantee  the regret bounds, with explanations
outcome       measurements of each arm, the winner      view       the summary shown to users, with alarms
"""
