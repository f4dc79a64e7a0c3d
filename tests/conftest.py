"""Settings of the whole suite."""

import os

from hypothesis import settings

# Other processes may share the machine: no example may fail for being slow. Under CI the examples
# are the same each time, so that a failure is the change's own.
settings.register_profile("cito", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cito")
