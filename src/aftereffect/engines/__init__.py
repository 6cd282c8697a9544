"""Simulators: `loop.py`, the obvious one; `blocks.py` and `rounds.py`, compiled. `simulate.py` picks."""
