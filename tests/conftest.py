"""Settings for all tests. `make soak` runs the same tests with many more random examples."""

import os

from hypothesis import settings

# Deadlines measure the machine, not the code; a first call compiles.
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
