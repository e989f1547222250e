"""What an error says of a disk: that it is full, or that nothing may be written there."""

import errno
import re

# How libraries in Rust (safetensors) and C++ (torch.save, as seen on a full disk) say it: they give no number.
_SAID = re.compile(
    r"No space left on device|PytorchStreamWriter failed writing|inline_container\.cc:\d+\] \. unexpected pos"
)


def is_full(error: BaseException) -> bool:
    """True if there was no room for something that was written."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or bool(_SAID.search(str(error)))


def is_closed(error: OSError) -> bool:
    """True if a place cannot be written to at all, whatever is written."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
