"""Dead letters: read, and sent back.

Begin with `replay.py`, then `decisions.py`. `dead_letters.py` of the room `producing` writes them.
"""
