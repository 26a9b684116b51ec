"""CRC-32 as zlib computes it (IEEE, reflected)."""

from synapticos.lang import *


def _entry(n: int) -> int:
    for _ in range(4):
        n = (n >> 1) ^ (0xEDB88320 if n & 1 else 0)
    return n


NIBBLES = rom(u32, [_entry(n) for n in range(16)])  # 64 bytes of table: half a byte at a time


@fn(pure=True)
def crc32(data: Ptr[u8], n: u32, seed: u32) -> u32:
    """The checksum of `n` bytes. `seed` is 0, or the checksum of what came before them."""
    crc = ~seed
    for i in range(n):
        crc = crc ^ data[i]
        crc = (crc >> 4) ^ NIBBLES[crc & 15]
        crc = (crc >> 4) ^ NIBBLES[crc & 15]
    return ~crc
