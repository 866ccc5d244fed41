"""The process that hosts copy runs: its life, the loops in it, and its limits."""
