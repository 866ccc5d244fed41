"""The rules of a worker's properties: what a worker reads and refuses, and what state refuses before there is one."""
