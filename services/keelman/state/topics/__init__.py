"""Topics as resources: their checks, the brokers' reports of them, and the changes to brokers that apply them.

Begin with `applying.py`, then `look.py`, after `nouns/topic.py`; docs/definitions.md.
"""
