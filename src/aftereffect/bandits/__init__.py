"""Base algorithms for immediate losses in [0, 1], `protocol.py` defines the contract."""
