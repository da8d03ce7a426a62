"""Check that a provider can be called before anything is started for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from csp.agents.api.api_keys import find_key
from csp.agents.api.packages import check_extra
from csp.errors import BadInput
from csp.model_providers import Provider, provider_named
from csp.setting_types import WEB, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredProvider:
    """A provider that can be called; `key` is empty for a server without one."""

    provider: Provider
    base_url: str
    key: str = field(repr=False)


def wanted(name: str, base_url: str | None, key_env: str | None, env: Mapping[str, str]) -> RequiredProvider:
    """Return the provider with its address and key; raise if something is missing."""
    provider = provider_named(name)
    url = str(read_text(WEB, base_url, "--base-url")) if base_url else provider.base_url
    if provider.needs_url and not url:
        raise BadInput(f"{name} needs an address", "give it: --base-url http://127.0.0.1:8000/v1")
    check_extra(provider)
    return RequiredProvider(provider=provider, base_url=url, key=find_key(name, provider, key_env or "", env))
