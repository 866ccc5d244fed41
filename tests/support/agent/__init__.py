"""The base of the agent's tests."""
