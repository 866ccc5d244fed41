"""What a release is made of: its packages and jars, the advisories that are open for them, and its SBOM.

Begin in `parts.py`, which lists everything that a release installs or fetches.
"""
