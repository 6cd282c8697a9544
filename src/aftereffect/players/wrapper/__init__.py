"""Algorithm 1 of the paper and its variants.

wrapper         CompositeLossWrapper, Algorithm 1: any Bandit becomes a Player
coin_clean      CoinCleanWrapper: learns from every coin-clean round; what `default_player` returns
doubling        DoublingWrapper: without a horizon            unknown_delay   UnknownDelayWrapper: without d
panel           Panel: several units that share one learner   certificate     what can be said of the regret
coins, windows  update rounds, and the totals that are fed    kernels         the same, compiled for the engines
"""
