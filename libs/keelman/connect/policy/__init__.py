"""What connectors of a worker may be: the rules of its installation, judged at create and again at run.

Begin with `policy.py`, then `judging.py`.
"""
