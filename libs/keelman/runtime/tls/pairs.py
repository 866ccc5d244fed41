"""Loads certificate chains and their keys from memory into contexts of the standard library, which reads files only."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path


def load_pair(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Has a context present a certificate chain, PEM; its key must not be encrypted. The files are readable only by
    their owner, and deleted at once. Raises ssl.SSLError and ValueError for an unusable pair."""
    with tempfile.TemporaryDirectory(prefix="keelman-pem-") as folder:  # of mode 0700
        files = Path(folder) / "chain", Path(folder) / "key"
        for file, content in zip(files, (chain, key), strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
        context.load_cert_chain(*files, password=lambda: "")
