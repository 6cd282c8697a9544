"""Settings for all tests. `make soak` runs the same tests with many more random examples."""

import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

# Thousands of small stores are written and synced. In memory, where there is plenty, nobody waits for a disk; that each
# answer waits for its sync is tested by the system calls, wherever files are (`service/faults/test_order_of_sync.py`).
MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

# Deadlines, and the check on how long examples take to make, measure the machine, not the code; a first call compiles.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", UNTIMED, max_examples=40, derandomize=True)
settings.register_profile("soak", UNTIMED, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
