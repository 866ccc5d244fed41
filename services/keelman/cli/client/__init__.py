"""Reaches the services behind commands: the gateway by gRPC, and Connect's REST behind it; finds their addresses."""
