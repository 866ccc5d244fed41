"""Records on their way: converted, transformed, measured, and judged by the error policy.

Begin with `bad_records.py`, `fused.py` (converters and transforms as one function) and `registries.py`.
"""
