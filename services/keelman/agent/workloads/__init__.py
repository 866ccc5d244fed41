"""The workloads of a node: what each is started with, held to and asked, its logs, and what is seen of it."""
