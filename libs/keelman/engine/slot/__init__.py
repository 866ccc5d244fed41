"""The process that hosts copy runs: its life, the loops in it, what it may use."""
