"""Give a test's program something of the system for itself: a disk, a limit of the kernel."""

import os
import subprocess
from functools import cache

_OWN_USER = ("unshare", "--user", "--map-root-user")


@cache
def has_user_namespaces() -> bool:
    """Tell whether anybody may have a namespace; inside a chroot the kernel gives none."""
    run = subprocess.run([*_OWN_USER, "true"], capture_output=True, check=False)
    return run.returncode == 0


def with_own_mounts() -> tuple[str, ...]:
    """Return the words before a command that may mount what it alone sees; gone with its last process."""
    if has_user_namespaces():
        return (*_OWN_USER, "--mount")
    root = () if os.geteuid() == 0 else ("sudo", "-n", "--preserve-env")
    # The root of a chroot is no mount point, whose propagation could be changed.
    return (*root, "unshare", "--mount", "--propagation", "unchanged")
