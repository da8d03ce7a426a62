"""Build the environments of child processes.

The environment of every process that CSP starts is built here. For programs that work for CSP, it is a list
of the variables that the child needs. For the user's own programs, it is the user's environment without
CSP's identity and secrets. The same user's processes can read those from files: this keeps secrets from
being handed out, but it is not a security boundary.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: A system program, such as git, ps or nice.
TOOL = "tool"
#: A csp process, such as a journal check or a sidecar's brain.
HELPER = "helper"
#: A csp process that calls an API model; `keys` names the variables that its SDK reads.
CONNECTOR = "connector"
#: A program of the user, such as a CLI, a test command, a shell or a browser, or a program that starts one.
USER = "user"

#: Marks the environment of a connector.
MADE = "CSP_CONNECTOR"
TOKEN = "CSP_AUTH_TOKEN"
#: The identity of a process in a room. A child gets these only through `own`.
IDENTITY = (TOKEN, "CSP_AGENT", "CSP_GATEWAY_URL")
#: Words in our variable names that indicate a secret.
_SECRET_WORDS = frozenset({"TOKEN", "SECRET", "PASSWORD", "KEY"})

_BASIC = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("XDG_CONFIG_HOME", "XDG_CACHE_HOME"),
    }
)
_BASIC_PREFIXES = ("LC_",)
_OURS = frozenset(
    {
        *("SHELL", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERMINFO"),
        *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DBUS_SESSION_BUS_ADDRESS"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)
_OUR_PREFIXES = ("XDG_", "CSP_", "PYTHON", "TMUX", "SSL_CERT_", "TERMINFO_")
#: Proxy variables in upper and lower case, because programs differ in the ones they read.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
#: Shorter secrets would match unrelated values.
_LEAST_SECRET = 8


def child_environment(
    kind: str,
    environ: "Mapping[str, str]",
    own: "Mapping[str, str] | None" = None,
    *,
    keys: "Collection[str]" = (),
    secrets: "Collection[str]" = (),
) -> dict[str, str]:
    """Return the environment for a child process.

    `own` are additional variables for this child, such as its token. `keys` are variables that a connector
    gets even if they are secret, because its SDK reads them. A variable with one of `secrets` in its
    value is omitted, whatever its name; the token in `environ` is always one of the secrets.
    """
    known = [secret for secret in (environ.get(TOKEN, ""), *secrets) if len(secret) >= _LEAST_SECRET]
    named = set(keys) if kind == CONNECTOR else set()
    return {
        name: value
        for name, value in environ.items()
        if (_is_for(kind, name) or name in named)
        and name not in IDENTITY
        and not any(secret in value for secret in known)
    } | dict(own or {})


def identity(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the identity of this process for a child that acts as the same person or agent."""
    return {name: environ[name] for name in IDENTITY if name in environ}


def _is_for(kind: str, name: str) -> bool:
    if name.startswith("CSP_") and not _SECRET_WORDS.isdisjoint(name.split("_")):
        return False
    if kind == USER:
        return True
    if name in _BASIC or name.startswith(_BASIC_PREFIXES):
        return True
    if kind == TOOL:
        return False
    return name in _OURS or name.startswith(_OUR_PREFIXES) or name.upper() in _PROXIES


def without_git(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return an environment without variables such as GIT_DIR, which would select another repository."""
    return {name: value for name, value in environ.items() if not name.startswith("GIT_")}


__all__ = [
    "CONNECTOR",
    "HELPER",
    "IDENTITY",
    "MADE",
    "TOKEN",
    "TOOL",
    "USER",
    "child_environment",
    "identity",
    "without_git",
]
