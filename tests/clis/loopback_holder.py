"""Makes a network namespace, sends a listening socket of it to its parent, keeps it open until killed.

Stands alone: started with -I -S, in a process of one thread, as unshare(2) wants it.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare() -> list[str] | None:
    """Enter a new namespace as root, else in a user namespace of our own; return how to follow."""
    if _libc.unshare(_CLONE_NEWNET) == 0:
        return ["--net"]
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return None
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return ["--user", "--net", "--preserve-credentials"]


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP_RUNNING))


def main() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        try:
            ways = unshare()
            if ways is None:
                return
            raise_loopback()
        except OSError:
            return
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        socket.send_fds(parent, [" ".join(ways).encode()], [listener.fileno()])
        listener.close()
    signal.pause()


if __name__ == "__main__":
    main()
