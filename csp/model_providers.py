"""The table of model providers, with one row for each.

To add a provider, add a row here and, if it has its own API, a function to csp.agents.api.providers.
"""

from typing import Final, NamedTuple

from csp.errors import BadInput


class Provider(NamedTuple):
    """A provider of models.

    `extra` is the package of its SDK and also the extra that installs it. `opens` is the function in
    csp.agents.api.providers that calls it. `prices` is its name in the price list, or empty for a server with
    unknown prices. Such a server gets a key only if the user names one, because it must not see other
    providers' keys. `variables` are the other variables that its SDK reads.
    """

    extra: str
    opens: str
    key_env: str = ""
    prices: str = ""
    base_url: str = ""
    needs_key: bool = True
    needs_url: bool = False
    variables: tuple[str, ...] = ()


_OPENAI: Final = ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_PROJECT")
_GEMINI: Final = "https://generativelanguage.googleapis.com/v1beta/openai/"
# bin/setup.sh reads the name and the extra of each row.
# fmt: off
PROVIDERS: Final[dict[str, Provider]] = {
    "anthropic": Provider(extra="anthropic", opens="anthropic", key_env="ANTHROPIC_API_KEY",
                          prices="anthropic", variables=("ANTHROPIC_BASE_URL",)),
    "openai": Provider(extra="openai", opens="openai", key_env="OPENAI_API_KEY", prices="openai",
                       variables=_OPENAI),
    "gemini": Provider(extra="openai", opens="chat", key_env="GEMINI_API_KEY", prices="google",
                       base_url=_GEMINI, variables=_OPENAI),
    "openai-compatible": Provider(extra="openai", opens="chat", needs_key=False, needs_url=True,
                                  variables=_OPENAI),
}
# fmt: on


def provider_named(name: str) -> Provider:
    """Return the provider with this name, or raise BadInput with a list of all providers."""
    found = PROVIDERS.get(name)
    if found is None:
        raise BadInput(f"unknown provider {name!r}", f"expected one of: {', '.join(PROVIDERS)}")
    return found


def well_known() -> list[str]:
    """Return the providers that need nothing but a key."""
    return [name for name, row in PROVIDERS.items() if row.needs_key]


def sdk_packages() -> set[str]:
    """Return the SDK packages of all providers."""
    return {row.extra for row in PROVIDERS.values()}


def variables_of(name: str, key_env: str | None) -> tuple[str, ...]:
    """Return the variables needed to call a provider: the key and the others that its SDK reads."""
    row = provider_named(name)
    return tuple(filter(None, (key_env or row.key_env, *row.variables)))
