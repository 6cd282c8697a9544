"""Settings for all tests. `make soak` runs the same tests with many more random examples."""

import os

from hypothesis import HealthCheck, settings

# Deadlines, and the check on how long examples take to make, measure the machine, not the code; a first call compiles.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", UNTIMED, max_examples=40, derandomize=True)
settings.register_profile("soak", UNTIMED, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
