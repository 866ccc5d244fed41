"""Plans what the agents are to run, from what is wanted and what is: pure."""
