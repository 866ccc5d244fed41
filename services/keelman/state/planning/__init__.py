"""What is wanted and what is, in; what the agents are to run, out: pure."""
