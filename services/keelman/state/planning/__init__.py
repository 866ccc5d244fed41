"""Plans the workloads of agents, from the goals and the present state: pure."""
