"""Locks between processes, on file systems with locks and on those without (network folders, a mounted Drive)."""

import errno
import functools
import getpass
import hashlib
import logging
import tempfile
from pathlib import Path

from filelock import FileLock

logger = logging.getLogger(__name__)

_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL, errno.ENOTTY, errno.EIO}


def lock_beside(path: Path, timeout: float = -1) -> FileLock:
    """A lock that one process at a time holds, and that the system frees when its process ends.

    Where the path's file system has no locks, it stands in this machine's temporary folder: it then keeps processes
    of one machine apart, not those of several, and a warning says so, once.

    Args:
        path: of the lock file; its folder exists.
        timeout: seconds to wait; -1 for as long as it takes.
    """
    if has_locks(path.parent.resolve()):
        return FileLock(path, timeout=timeout)
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    return FileLock(Path(tempfile.gettempdir()) / f"bertology-{getpass.getuser()}-{name}.lock", timeout=timeout)


@functools.cache
def has_locks(folder: Path) -> bool:
    """Does a folder's file system have locks? A file system that cannot be asked is taken to have them."""
    try:
        import fcntl
    except ImportError:  # Windows, whose locks are of another kind
        return True
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed below
    except OSError:  # nothing can be written: what is done there next says so
        return True
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning("the file system of %s has no locks: let one machine at a time work there", folder)
            return False
    return True
