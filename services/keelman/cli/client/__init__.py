"""Reaches what answers commands: the gateway by gRPC, and Connect's REST behind it; finds where both are."""
