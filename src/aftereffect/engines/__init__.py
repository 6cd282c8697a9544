"""Simulators of many runs of a player on one loss sequence.

simulation    `simulate`, which chooses an engine, and its result
loop          the reference engine: ask, play, tell
rounds        any player in kernel form, labelled ones too, compiled
blocks        Algorithm 1, one step per block, compiled      prefix_sums    the sums that it looks up
cuda          the same on a GPU
workload      the input and output of an engine, and the distribution of runs over threads
"""
