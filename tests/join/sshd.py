"""The sshd of the tests: that of the system, or the one that `bin/test` has unpacked into the cache.

The package openssh-server would start an sshd that listens to the network, so it is never installed.
"""

import os
import pwd
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.clis.install import CACHE

UNPACKED: Final = CACHE / "sshd"
_LIBRARIES: Final = ("lib/*-linux-gnu", "usr/lib/*-linux-gnu", "lib64", "usr/lib64")
#: Versions from 9.8 on run further programs, which they look for where the package would have put them.
_PARTS: Final = {"SshdSessionPath": "sshd-session", "SshdAuthPath": "sshd-auth"}
#: As root, an sshd of Linux wants this user, who is confined to an empty folder. The package makes both.
_USER: Final = "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
_WITH_FOLDER: Final = 'mkdir -p /run/sshd && exec "$@"'
_WITH_USER: Final = 'mkdir -p /run/sshd && mount --bind "$0" /etc/passwd && exec "$@"'


class Sshd(NamedTuple):
    """A program, with the variables and settings that it needs where it is."""

    program: Path
    env: tuple[str, ...] = ()
    config: str = ""

    @classmethod
    def of_system(cls) -> Self | None:
        """Return the installed one."""
        found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        return cls(Path(found)) if found else None

    @classmethod
    def unpacked(cls, folder: Path = UNPACKED) -> Self | None:
        """Return the one in the cache."""
        program = folder / "usr" / "sbin" / "sshd"
        if not program.exists():
            return None
        found = (path for pattern in _LIBRARIES for path in folder.glob(pattern))
        libraries = ":".join(str(path) for path in found)
        parts = {name: next(folder.glob(f"usr/lib*/**/{part}"), None) for name, part in _PARTS.items()}
        config = "".join(f"{name} {path}\n" for name, path in parts.items() if path)
        return cls(program, (f"LD_LIBRARY_PATH={libraries}",), config)

    def words(self, config: Path, enter: Sequence[str] = ()) -> list[str]:
        """Return the command that serves with a file of settings; `enter` are words before it."""
        words = ["env", *self.env, str(self.program), "-D", "-e", "-f", str(config)]
        # `enter` leads to another machine as root.
        if sys.platform == "linux" and (os.geteuid() == 0 or enter):
            words = [*_prepared(config.with_name("passwd")), *words]
        return [*enter, *words]


def find_sshd() -> Sshd:
    """Return the sshd for the tests."""
    found = Sshd.of_system() or Sshd.unpacked()
    assert found, "no sshd here; bin/test unpacks one"
    return found


def _prepared(passwd: Path) -> list[str]:
    """Return the words before a command that expects what the package would have made."""
    name = _USER.partition(":")[0]
    if any(user.pw_name == name for user in pwd.getpwall()):
        return ["sh", "-c", _WITH_FOLDER, str(passwd)]
    passwd.write_text(Path("/etc/passwd").read_text() + _USER)
    passwd.chmod(0o644)
    # Only this command and its children see the user. The root of a chroot is no mount point, whose
    # propagation could be changed.
    return ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _WITH_USER, str(passwd)]
