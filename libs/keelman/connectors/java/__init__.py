"""Connectors written in Java: loaded by JPype into plugin hosts and slots, where keelman's engine copies for them.

Begin with `connector.py`, then `source/reader.py` with `poll_thread.py` and `loops.py`, or `sink/writer.py`.
`keelman.connectors.plugins.java_folders` finds the plugins.
"""
