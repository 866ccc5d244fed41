"""The agent of a node: launches its workloads as processes, supervises and reports them, and adopts them again.

Begin with `step.py` (the decisions), then `session.py`.
"""
