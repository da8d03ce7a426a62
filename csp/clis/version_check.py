"""Compare a CLI's installed version with the versions that its profile was tested with."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from csp.clis.profile import Profile
from csp.fast_start.child_environment import USER, child_environment

#: The timeout for a CLI to print its version: it stops a CLI that hangs, but not one that starts slowly on a
#: busy machine. Gemini CLI alone needs two seconds of CPU time.
TIMEOUT_S: Final = 180.0


def ask_version(profile: Profile, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the version printed by the CLI, or "" if the command is not the CLI itself."""
    name = argv[0].rpartition("/")[2]
    if name not in profile.commands or profile.is_shell:
        return ""
    try:
        said = subprocess.run(
            [argv[0], *profile.version_args],
            env=child_environment(USER, env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip().partition("\n")[0][:100]


def untested(profile: Profile, version: str) -> str:
    """Return a warning if the profile was not tested with this version, else ""."""
    if not version or profile.is_tested_version(version):
        return ""
    return f"{profile.name} {version}, but its profile was tested with {profile.versions}"
