"""What an error says of a disk: that it is full, or that nothing may be written there."""

import errno


def is_full(error: BaseException) -> bool:
    """True if there was no room for something that was written; libraries in C++ and Rust say it in their message alone."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or "No space left on device" in str(error) or "PytorchStreamWriter failed writing" in str(error)


def is_closed(error: OSError) -> bool:
    """True if a place cannot be written to at all, whatever is written."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
