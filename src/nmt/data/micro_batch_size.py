"""How many tokens a micro-batch may have on each side, if devices and accumulation divide a global batch."""

ROOM_TO_GROW = 1.25
"""How many times as long as planned a micro-batch may become, when its text is changed, before it is split.

BPE-dropout of 0.1 makes sentences about 15% longer.
"""


def micro_batch_tokens(batch_tokens: int, device_tokens: int, devices: int) -> int:
    """Return the limit of source tokens, and of target tokens, for which a micro-batch is planned."""
    share = -(-batch_tokens // devices)
    return min(device_tokens or share, share)


def changed_micro_batch_tokens(batch_tokens: int, device_tokens: int, devices: int) -> int:
    """Return the limit for a micro-batch whose sentences may have become longer than planned.

    A longer micro-batch is split, so that it never needs more memory than was checked.
    """
    return device_tokens or with_room_to_grow(-(-batch_tokens // devices))


def with_room_to_grow(tokens: int) -> int:
    """Return how many tokens a batch may have after changes of its text, if it is planned with `tokens` tokens."""
    return int(tokens * ROOM_TO_GROW)


def full_micro_batch_tokens(batch_tokens: int, device_tokens: int, devices: int) -> int:
    """Return about how many source or target tokens each of the equal micro-batches of a full global batch has."""
    share = -(-batch_tokens // devices)
    return -(-share // -(-share // micro_batch_tokens(batch_tokens, device_tokens, devices)))
