"""Loads certificate chains and their keys from memory into contexts of the standard library, which reads files only."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path


def load_pair(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Has a context show a chain, PEM; its key must not be encrypted. The files are their owner's alone, and gone at
    once. Raises ssl.SSLError and ValueError for what cannot be used."""
    with tempfile.TemporaryDirectory(prefix="keelman-pem-") as folder:  # of mode 0700
        files = Path(folder) / "chain", Path(folder) / "key"
        for file, content in zip(files, (chain, key), strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
        context.load_cert_chain(*files, password=lambda: "")
