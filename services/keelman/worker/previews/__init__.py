"""Previews and replays, in processes of their own beside the copying.

Begin with `previews.py`, then keelman.connectors.plugins.previews and keelman.connect.previews.
"""
