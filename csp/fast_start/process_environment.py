"""Find what a process is told by its environment, as plain strings."""

import os

#: Where the system keeps a folder for each user who is logged in.
RUNTIME_DIRS = "/run/user"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def process_environment() -> dict[str, str]:
    """Return the environment of this process, for a child that shall have it."""
    return dict(os.environ)


def home(env: "Mapping[str, str]") -> str:
    """Return the home directory, nothing where there is none."""
    found = env.get("HOME") or os.path.expanduser("~")
    return "" if found.startswith("~") else found


def xdg(env: "Mapping[str, str]", variable: str, fallback: str) -> str:
    """Return a base directory, nothing where there is none; by its specification it is no relative path."""
    chosen = env.get(variable, "")
    if chosen.startswith("/"):
        return chosen
    found = home(env)
    return os.path.join(found, fallback) if found else ""


def unnamed_runtime_dir(env: "Mapping[str, str]") -> str:
    """Return where rooms are announced by who knows the runtime folder, if this process is not told it."""
    folder = os.path.join(RUNTIME_DIRS, str(os.getuid()), "csp")
    return "" if env.get("XDG_RUNTIME_DIR") or not os.path.isdir(folder) else folder


def state_dir(env: "Mapping[str, str]") -> str:
    """Return the folder in which running rooms are announced, nothing where there is no place for it."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.path.isdir(runtime):
        return os.path.join(runtime, "csp")
    cache = xdg(env, "XDG_CACHE_HOME", ".cache")
    return cache and os.path.join(cache, "csp")


def set_variable(name: str, value: str | None) -> str | None:
    """Set a variable of this process, or remove it; return what it was before."""
    before = os.environ.get(name)
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
    return before
