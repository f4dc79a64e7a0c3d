"""Settings of the whole suite."""

import os

# Before numpy is imported: the matrices are small, and threads of the linear algebra only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings  # noqa: E402

# Other processes may share the machine: no example may fail for being slow. Under CI the examples
# are the same each time, so that a failure is the change's own.
settings.register_profile("cito", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cito")
