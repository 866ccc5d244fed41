"""The workloads of a node: their commands, limits and checks, their logs, and their observed state."""
