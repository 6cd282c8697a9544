"""Simulators of many runs of a player on one loss sequence.

simulation    `simulate`, which picks an engine, and its result
loop          the definition: ask, play, tell
rounds        any player in kernel form, compiled       labelled       the same for labelled players
blocks        Algorithm 1, a step a block, compiled     prefix_sums    what it looks up instead of walking
workload      what an engine is asked to do, and how runs are shared out over threads
"""
