"""What the agent's tests stand on."""
