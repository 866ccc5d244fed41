"""Property tests try the same cases each time, so that a run says something of the change that it is run for.

`make explore` has them try random cases.
"""

from hypothesis import settings

from keelman.runtime import grpc_forks

grpc_forks.keep_out()
settings.register_profile("same", derandomize=True)
settings.load_profile("same")
