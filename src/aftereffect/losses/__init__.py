"""Oblivious loss sequences, fixed before play begins.

protocol       Losses: the interface of a sequence to players and engines; from an array of components
tables         whole losses round by round: iid, switching, drifting, seasonal, ...
spreads        how the losses of a table arrive over time: delayed, split, fading, ...
delay_laws     the laws of random delays
hard           the instance of the lower bound
linear_system  rewards of a linear dynamical system, such as a real advertising system
year           worlds at human scale: a year of days, with noise, seasons and levels of the day
replay         from recorded data
"""
