"""Check, before anything is started, that a provider's SDK, address and key are available."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from csp.errors import BadInput, Refused
from csp.model_providers import Provider, provider_named
from csp.setting_types import WEB, read_text

#: The service name for our keys in a keyring.
SERVICE: Final = "csp"
_ROOT: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredProvider:
    """A provider that can be called; `key` is empty for a server that needs none."""

    provider: Provider
    base_url: str
    key: str = field(repr=False)


def wanted(name: str, base_url: str | None, key_env: str | None, env: Mapping[str, str]) -> RequiredProvider:
    """Return the provider with its address and key; raise if anything is missing."""
    provider = provider_named(name)
    url = str(read_text(WEB, base_url, "--base-url")) if base_url else provider.base_url
    if provider.needs_url and not url:
        raise BadInput(f"{name} needs an address", "set it: --base-url http://127.0.0.1:8000/v1")
    if not is_installed(provider):
        hint = f"install it: {how_to_install(provider)}"
        raise Refused(f"the package {provider.extra!r} is not installed", hint)
    return RequiredProvider(provider=provider, base_url=url, key=find_key(name, provider, key_env or "", env))


def is_installed(provider: Provider) -> bool:
    """Return whether a provider's SDK is installed, without loading it, which would take seconds."""
    return importlib.util.find_spec(provider.extra) is not None


def how_to_install(provider: Provider) -> str:
    """Return the command that installs a provider's requirements, in a clone or for a package."""
    if (_ROOT / "uv.lock").is_file():
        return f"uv sync --inexact --extra {provider.extra} --project {_ROOT}"
    return f"pip install 'csp-groupchat[{provider.extra}]'"


def find_key(name: str, provider: Provider, key_env: str, env: Mapping[str, str]) -> str:
    """Return the key from the environment, else from the user's keyring; raise Refused if it is missing.

    For a server that needs no key, return an empty string.
    """
    variable = key_env or provider.key_env
    key = env.get(variable, "").strip() if variable else ""
    if variable and not key and importlib.util.find_spec("keyring") is not None:
        keyring = importlib.import_module("keyring")
        try:
            key = str(keyring.get_password(SERVICE, variable) or "").strip()
        except Exception:
            # A keyring that is locked or has no backend counts as one without our key.
            key = ""
    if not key and (provider.needs_key or key_env):
        hint = f"set it: export {variable}=..., or put it into your keyring as {SERVICE} {variable}"
        raise Refused(f"there is no key for {name}: {variable} is not set", hint)
    return key
