"""Random clients use all of a worker cluster's REST API while workers are killed, frozen and ended.

Then some order of the operations must explain every answer, and the cluster must have reached the requested state.
"""
