"""Tells the read part of a file from other content by few bytes: its beginning, its end, and samples between them.

It costs the hot path next to nothing: of a block that is read some bytes are kept, and the first blocks alone are
hashed. Content of up to `WHOLE_BYTES` is covered completely.
"""

from __future__ import annotations

import hashlib
import os

MARK_BYTES = 256
WHOLE_BYTES = 1 << 18
SAMPLE_BYTES = 64
STRIDE_BYTES = 1 << 16
MOST_SAMPLES = 64


class Fingerprint:
    """The fingerprint of the first `position` bytes of a file. One thread uses it."""

    def __init__(self) -> None:
        self.position = 0
        self.first = b""
        self.last = b""
        self._whole = hashlib.blake2b(digest_size=8)
        self._samples: dict[int, bytes] = {}
        self._sampled = self._whole.copy()

    @classmethod
    def of(cls, descriptor: int, position: int) -> Fingerprint:
        """Returns the fingerprint of a file's content before a position."""
        fingerprint = cls()
        fingerprint.advance(os.pread(descriptor, min(WHOLE_BYTES, position), 0))
        if position > WHOLE_BYTES:
            stride = _stride(position)
            for end in range(stride, position + 1, stride):
                if end > WHOLE_BYTES:
                    fingerprint._samples[end] = os.pread(descriptor, SAMPLE_BYTES, end - SAMPLE_BYTES)
            fingerprint.position = position
            fingerprint.last = os.pread(descriptor, MARK_BYTES, position - MARK_BYTES)
            fingerprint._sample_again()
        return fingerprint

    def advance(self, block: bytes) -> None:
        """Adds the block behind the position."""
        begin, self.position = self.position, self.position + len(block)
        if begin < WHOLE_BYTES:
            self._whole.update(block[: WHOLE_BYTES - begin])
        if len(self.first) < MARK_BYTES:
            self.first += block[: MARK_BYTES - len(self.first)]
        before, self.last = self.last, (self.last + block)[-MARK_BYTES:] if len(block) < MARK_BYTES else b""
        self.last = self.last or block[-MARK_BYTES:]
        if begin < WHOLE_BYTES or begin // STRIDE_BYTES != self.position // STRIDE_BYTES:
            self._take_samples(begin, before, block)

    def digest(self) -> str:
        """Returns the fingerprint as sixteen hexadecimal digits."""
        sampled = self._sampled.copy()
        sampled.update(self.last)
        return sampled.hexdigest()

    def head(self) -> str:
        """Returns eight hexadecimal digits of its first bytes alone, which rule other content out quickly."""
        return head_of(self.first)

    def _take_samples(self, begin: int, before: bytes, block: bytes) -> None:
        stride = _stride(self.position)
        for end in range(begin // stride * stride + stride, self.position + 1, stride):
            if end > WHOLE_BYTES:
                behind = end - begin
                taken = block[max(0, behind - SAMPLE_BYTES) : behind]
                self._samples[end] = (before + taken)[-SAMPLE_BYTES:] if len(taken) < SAMPLE_BYTES else taken
        self._samples = {end: sample for end, sample in self._samples.items() if end % stride == 0}
        self._sample_again()

    def _sample_again(self) -> None:
        self._sampled = self._whole.copy()
        self._sampled.update(b"".join(self._samples.values()))


def head_of(first: bytes) -> str:
    """Returns eight hexadecimal digits of the first bytes of a file, at most `MARK_BYTES`."""
    return hashlib.blake2b(first, digest_size=4).hexdigest()


def _stride(position: int) -> int:
    """Returns the distance of the samples, so that there are not too many before the position."""
    stride = STRIDE_BYTES
    while position // stride > MOST_SAMPLES:
        stride *= 2
    return stride
