"""An experiment without clock, network or database: commands go in, answers, events and rows come out.

experiment    Experiment: ask, tell, amend, start, pause, resume, away, back, finish
commands      the commands as values                 state      what an experiment is now, saved and restored
rounds        a round, its row with the "why"        learner    from settings to the player that decides
plan          what settings mean before the start    guarantee  what is promised
outcome       what was seen of each arm              view       all of it as people see it, with alarms
"""
