"""Players: algorithms that choose arms under composite anonymous feedback.

protocol    the contracts: Player, and LabelledPlayer for the baselines that also see which play caused a loss
base        base classes: range of effects, order of ask and tell, copies, saved states
wrapper/    Algorithm 1 and its variants              default     the recommended player
rivals/     other players, by kind                    labelled/   players under labelled feedback, one module per paper
registry    every player by name: label, needs, settings, factory; `restore`
"""
