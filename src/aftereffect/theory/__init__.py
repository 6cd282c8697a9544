"""The paper's statements as functions, one per definition, lemma, theorem or corollary.

    updates     when the wrapper updates and what its windows hold (Definition 1, Lemmas 2 and 11)
    stability   how little an update moves a base algorithm (Theorem 5, Lemma 14)
    regret      the bounds of base algorithms and wrapper (Theorems 4 and 6)
    tuning      β, η and the bound they give (Corollary 7)
    sharp       Theorem 4 with smaller constants, and the β and η that go with it
    rates       the table of Section 1, and the lower bound (Theorem 10)
    multiplier  what FTRL with Tsallis entropy plays (Lemmas 12 and 13)
    adaptive    FTRL whose rate follows its costs, and the wrapper around it: certificates, worst cases
    sizes       the checks of K, d and T that the others share
"""

from aftereffect.theory.adaptive import (
    adaptive_mass_moved,
    adaptive_regret_bound,
    entropy_range,
    stretch_certificate,
    stretch_scale,
    stretch_worst_case,
    window_certificate,
    window_worst_case,
)
from aftereffect.theory.multiplier import multiplier, multiplier_variation_bound, tsallis_distribution
from aftereffect.theory.rates import Rates, lower_bound, lower_bound_rate, rates
from aftereffect.theory.regret import exp3_regret_bound, tsallis_regret_bound, wrapper_regret_bound
from aftereffect.theory.sharp import (
    SharpTerms,
    exp3_stability_sharp,
    exp3_tuning_sharp,
    exp3_wrapper_bound,
    price_factor,
    sharp_terms,
    tsallis_regret_bound_sharp,
    tsallis_stability_sharp,
    tsallis_tuning_sharp,
    tsallis_wrapper_bound,
    wrapper_regret_bound_sharp,
)
from aftereffect.theory.sizes import Tuning, most_updates
from aftereffect.theory.stability import exp3_stability, tsallis_stability
from aftereffect.theory.tuning import (
    corollary_bound,
    corollary_learning_rate,
    exp3_learning_rate,
    exp3_learning_rate_printed,
    tuned_bound,
    tuning,
)
from aftereffect.theory.updates import (
    accountants_sums,
    best_update_probability,
    block_length_law,
    expected_updates,
    mean_block_length,
    update_rate,
    window_bound,
)

__all__ = [
    "Rates",
    "SharpTerms",
    "Tuning",
    "accountants_sums",
    "adaptive_mass_moved",
    "adaptive_regret_bound",
    "best_update_probability",
    "block_length_law",
    "corollary_bound",
    "corollary_learning_rate",
    "entropy_range",
    "exp3_learning_rate",
    "exp3_learning_rate_printed",
    "exp3_regret_bound",
    "exp3_stability",
    "exp3_stability_sharp",
    "exp3_tuning_sharp",
    "exp3_wrapper_bound",
    "expected_updates",
    "lower_bound",
    "lower_bound_rate",
    "mean_block_length",
    "most_updates",
    "multiplier",
    "multiplier_variation_bound",
    "price_factor",
    "rates",
    "sharp_terms",
    "stretch_certificate",
    "stretch_scale",
    "stretch_worst_case",
    "tsallis_distribution",
    "tsallis_regret_bound",
    "tsallis_regret_bound_sharp",
    "tsallis_stability",
    "tsallis_stability_sharp",
    "tsallis_tuning_sharp",
    "tsallis_wrapper_bound",
    "tuned_bound",
    "tuning",
    "update_rate",
    "window_bound",
    "window_certificate",
    "window_worst_case",
    "wrapper_regret_bound",
    "wrapper_regret_bound_sharp",
]
