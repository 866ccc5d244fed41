"""Clients of chance ask a worker cluster for all that its REST API has while workers are killed, frozen and ended; then
it is judged whether all that they were answered can have been, and whether the cluster came to rest as it was asked."""
