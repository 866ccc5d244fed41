"""CRC-32C (Castagnoli) of bytes that change in a few places only: computes the difference rather than the whole."""

from __future__ import annotations

from functools import cache

from crc32c import crc32c as checksum_of

_POLYNOMIAL = 0x82F63B78
"""0x1EDC6F41 with its bits reversed, as CRC-32C has them (RFC 3720, appendix B.4)."""


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Returns the checksum of all the bytes, by the processor's own instruction if it has one."""
    return checksum_of(data)


def after(difference: int, count: int) -> int:
    """Returns the difference of two checksums after the same `count` bytes are appended to both; about 1 us per bit of
    `count`.

    A CRC is linear: only the length of the appended bytes matters, not their content. So crc(a + c) ^ crc(b + c) ==
    after(crc(a) ^ crc(b), len(c)) for a and b of one length.
    """
    power = 0
    while count:
        if count & 1:
            difference = _times(_zeros(power), difference)
        count >>= 1
        power += 1
    return difference


@cache
def _zeros(power: int) -> tuple[int, ...]:
    """Returns the effect of 2**power zero bytes on each bit of a checksum."""
    if power:
        half = _zeros(power - 1)
        return tuple(_times(half, column) for column in half)
    columns = []
    for bit in range(32):
        value = 1 << bit
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        columns.append(value)
    return tuple(columns)


def _times(columns: tuple[int, ...], value: int) -> int:
    product = 0
    while value:
        lowest = value & -value
        product ^= columns[lowest.bit_length() - 1]
        value ^= lowest
    return product
