"""Who answers a command: the gateway by gRPC, Connect's REST behind it, and where both are."""
