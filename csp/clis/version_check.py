"""Compare the installed version of a CLI with those its profile was tested with."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from csp.clis.profile import Profile
from csp.fast_start.child_environment import USER, child_environment

#: How long a CLI may take to say one thing and end: one that hangs is given up, one that starts slowly on a
#: busy machine is not. Gemini CLI alone works for two seconds and waits for its turns on the processor.
TIMEOUT_S: Final = 180.0


def ask_version(profile: Profile, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what the CLI says of its version; nothing where the command is not the CLI itself."""
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
    """Name a version that the profile was not tested with, and those it was; nothing where it was."""
    if not version or profile.is_tested_version(version):
        return ""
    return f"{profile.name} {version}, but its profile was tested with {profile.versions}"
