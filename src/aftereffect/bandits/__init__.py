"""Base algorithms for immediate losses in [0, 1], one per module; `protocol.py` defines the contract."""
