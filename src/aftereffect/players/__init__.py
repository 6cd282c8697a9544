"""Who plays under composite anonymous feedback. `protocol.py` holds the contract, `wrapper.py` Algorithm 1."""
