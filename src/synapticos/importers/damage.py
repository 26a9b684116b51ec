"""What readers say of a file that contradicts itself."""

MAX_BYTES = 1 << 31  # a tensor, so that offsets and sizes fit 32 bits with room


class Damaged(Exception):
    """A fact about the file that no undamaged one has."""


def need(condition: bool, fact: str) -> None:
    if not condition:
        raise Damaged(fact)
