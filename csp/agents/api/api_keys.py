"""Find the key of a provider: in the environment, else in the user's keyring."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Final

from csp.errors import Refused
from csp.model_providers import Provider

#: Under which name of a service a keyring has our keys.
SERVICE: Final = "csp"


def find_key(name: str, provider: Provider, key_env: str, env: Mapping[str, str]) -> str:
    """Return the key, or an empty string for a server without one; raise Refused if it is missing."""
    variable = key_env or provider.key_env
    key = (env.get(variable, "").strip() or _in_keyring(variable)) if variable else ""
    if not key and (provider.needs_key or key_env):
        hint = f"set it: export {variable}=..., or put it into your keyring as {SERVICE} {variable}"
        raise Refused(f"there is no key for {name}: {variable} is not set", hint)
    return key


def _in_keyring(variable: str) -> str:
    """Return a key from the user's keyring, or an empty string."""
    if importlib.util.find_spec("keyring") is None:
        return ""
    keyring = importlib.import_module("keyring")
    try:
        return str(keyring.get_password(SERVICE, variable) or "").strip()
    except Exception:
        # A keyring that is locked or has no backend is one without our key.
        return ""
