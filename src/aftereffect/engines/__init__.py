"""Simulators: `loop.py`, the obvious one; `blocks.py` and `rounds.py`, compiled. `simulation.py` picks one."""
