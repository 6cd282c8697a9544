"""The paper's statements as functions, one per definition, lemma, theorem or corollary.

    paper       when the wrapper updates and what its windows contain (Definition 1, Lemmas 2 and 11); stability and
                regret of base algorithms and wrapper (Theorems 4 to 6, Corollary 7, Lemma 14); the table of Section 1
                and the lower bound (Theorem 10); the distribution that FTRL with Tsallis entropy plays (Lemmas 12 and
                13)
    sharp       Theorem 4 with smaller constants, and the best β and η for it and for Theorem 4 as printed
    adaptive    FTRL with a rate adapted to its costs, and the wrapper around it: certificates, worst cases
    tails       bounds for effects that last longer than the player is told
"""

from aftereffect.theory.adaptive import adaptive_mass_moved as adaptive_mass_moved
from aftereffect.theory.adaptive import adaptive_regret_bound as adaptive_regret_bound
from aftereffect.theory.adaptive import entropy_range as entropy_range
from aftereffect.theory.adaptive import stochastic_regret_bound as stochastic_regret_bound
from aftereffect.theory.adaptive import stopping_price as stopping_price
from aftereffect.theory.adaptive import stretch_certificate as stretch_certificate
from aftereffect.theory.adaptive import stretch_scale as stretch_scale
from aftereffect.theory.adaptive import stretch_stochastic_bound as stretch_stochastic_bound
from aftereffect.theory.adaptive import stretch_worst_case as stretch_worst_case
from aftereffect.theory.adaptive import window_certificate as window_certificate
from aftereffect.theory.adaptive import window_worst_case as window_worst_case
from aftereffect.theory.paper import Rates as Rates
from aftereffect.theory.paper import Tuning as Tuning
from aftereffect.theory.paper import accountants_sums as accountants_sums
from aftereffect.theory.paper import best_update_probability as best_update_probability
from aftereffect.theory.paper import block_length_law as block_length_law
from aftereffect.theory.paper import corollary_bound as corollary_bound
from aftereffect.theory.paper import corollary_learning_rate as corollary_learning_rate
from aftereffect.theory.paper import exp3_learning_rate as exp3_learning_rate
from aftereffect.theory.paper import exp3_learning_rate_printed as exp3_learning_rate_printed
from aftereffect.theory.paper import exp3_regret_bound as exp3_regret_bound
from aftereffect.theory.paper import exp3_stability as exp3_stability
from aftereffect.theory.paper import expected_updates as expected_updates
from aftereffect.theory.paper import lower_bound as lower_bound
from aftereffect.theory.paper import lower_bound_rate as lower_bound_rate
from aftereffect.theory.paper import mean_block_length as mean_block_length
from aftereffect.theory.paper import most_updates as most_updates
from aftereffect.theory.paper import multiplier as multiplier
from aftereffect.theory.paper import multiplier_variation_bound as multiplier_variation_bound
from aftereffect.theory.paper import rates as rates
from aftereffect.theory.paper import standard_regret_bound as standard_regret_bound
from aftereffect.theory.paper import tsallis_distribution as tsallis_distribution
from aftereffect.theory.paper import tsallis_regret_bound as tsallis_regret_bound
from aftereffect.theory.paper import tsallis_stability as tsallis_stability
from aftereffect.theory.paper import update_rate as update_rate
from aftereffect.theory.paper import window_bound as window_bound
from aftereffect.theory.paper import wrapper_regret_bound as wrapper_regret_bound
from aftereffect.theory.sharp import SharpTerms as SharpTerms
from aftereffect.theory.sharp import exp3_stability_sharp as exp3_stability_sharp
from aftereffect.theory.sharp import exp3_tuning_sharp as exp3_tuning_sharp
from aftereffect.theory.sharp import exp3_wrapper_bound as exp3_wrapper_bound
from aftereffect.theory.sharp import price_factor as price_factor
from aftereffect.theory.sharp import sharp_terms as sharp_terms
from aftereffect.theory.sharp import tsallis_regret_bound_sharp as tsallis_regret_bound_sharp
from aftereffect.theory.sharp import tsallis_stability_sharp as tsallis_stability_sharp
from aftereffect.theory.sharp import tsallis_tuning_sharp as tsallis_tuning_sharp
from aftereffect.theory.sharp import tsallis_wrapper_bound as tsallis_wrapper_bound
from aftereffect.theory.sharp import tuned_bound as tuned_bound
from aftereffect.theory.sharp import tuning as tuning
from aftereffect.theory.sharp import wrapper_regret_bound_sharp as wrapper_regret_bound_sharp
from aftereffect.theory.tails import alike_bound as alike_bound
from aftereffect.theory.tails import late_price as late_price
from aftereffect.theory.tails import seen_share as seen_share
from aftereffect.theory.tails import tail_bound as tail_bound
from aftereffect.theory.tails import tail_price as tail_price
