"""Base algorithms for immediate losses in [0, 1], one a file. `protocol.py` holds the contract."""
