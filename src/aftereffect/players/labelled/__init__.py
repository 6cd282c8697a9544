"""Baselines that see each loss with the number of its round: what anonymity costs."""
