"""Random clients ask a worker cluster for all that its REST API has while workers are killed, frozen and ended. Then
some order of the operations must explain every answer, and the cluster must have come to rest as it was asked."""
