"""Players: algorithms that choose arms under composite anonymous feedback.

protocol    the contracts: Player, and LabelledPlayer for the baselines that see more
base        what players have in common: range, turns, copies, saved states
wrapper/    Algorithm 1 and its variants          default     the player to begin with
rivals/     other players, one module a paper     labelled/   players under labelled feedback, one module a paper
registry    every player by name: label, needs, settings, factory; `restore`
figure1     Figure 1 for any coins                linear      Lemma 8: a linear bandit from any player
"""
