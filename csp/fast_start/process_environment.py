"""Read the environment of this process, as plain strings."""

import os

#: The parent of the system's runtime folders for logged-in users.
RUNTIME_DIRS = "/run/user"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def process_environment() -> dict[str, str]:
    """Return the environment of this process."""
    return dict(os.environ)


def home(env: "Mapping[str, str]") -> str:
    """Return the home directory, or an empty string."""
    found = env.get("HOME") or os.path.expanduser("~")
    return "" if found.startswith("~") else found


def xdg(env: "Mapping[str, str]", variable: str, fallback: str) -> str:
    """Return an XDG base directory, or an empty string; relative paths are invalid."""
    chosen = env.get(variable, "")
    if chosen.startswith("/"):
        return chosen
    found = home(env)
    return os.path.join(found, fallback) if found else ""


def unnamed_runtime_dir(env: "Mapping[str, str]") -> str:
    """Return the state folder of processes that have a runtime folder, if none is set for this process."""
    folder = os.path.join(RUNTIME_DIRS, str(os.getuid()), "csp")
    return "" if env.get("XDG_RUNTIME_DIR") or not os.path.isdir(folder) else folder


def state_dir(env: "Mapping[str, str]") -> str:
    """Return the folder in which running rooms are announced, or an empty string."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.path.isdir(runtime):
        return os.path.join(runtime, "csp")
    cache = xdg(env, "XDG_CACHE_HOME", ".cache")
    return cache and os.path.join(cache, "csp")


def set_variable(name: str, value: str | None) -> str | None:
    """Set or remove an environment variable of this process; return its old value."""
    before = os.environ.get(name)
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
    return before
