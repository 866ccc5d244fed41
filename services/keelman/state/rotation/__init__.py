"""Replaces the CA of the installation while everything runs. Begin in `steps.py`."""
