"""Algorithm 1 of the paper and its variants.

wrapper         CompositeLossWrapper, Algorithm 1: any Bandit becomes a Player
coin_clean      CoinCleanWrapper: learns from every coin-clean round; returned by `default_player`
panel           Panel: several units that share one learner   certificate     bounds on the regret of a run so far
coins, windows  update rounds, and the totals that are fed    kernels         the kernel forms, for the engines
"""
