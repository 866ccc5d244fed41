"""Operations: steps done one after the other by one state service, each stored before and after it is done.

Begin with `moves.py` (the next step, pure), then `runner.py`; the steps are in the rooms of the resources, such as
`applying.py` of `definitions` and `topics`.
"""
