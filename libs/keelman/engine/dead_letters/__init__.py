"""Dead letters: written, read, and sent back.

Begin with `writer.py`, after `bad_records.py` of the room `records`; the way back: `replay.py` and `decisions.py`.
"""
