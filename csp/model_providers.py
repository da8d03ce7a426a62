"""Who serves models behind an API: one row each, for everything that has to know them.

A new one is a row here and, if it speaks an API of its own, a function in csp.agents.api.providers.
"""

from typing import Final, NamedTuple

from csp.errors import BadInput


class Provider(NamedTuple):
    """One who serves models.

    `extra` is the package of its SDK, also the extra by which it is installed; `opens` is the function of
    csp.agents.api.providers that calls it; `prices` is its name in the list of prices, empty for a server of
    which nobody knows what it asks. Such a server gets a key only if somebody names one: that of another
    provider is none of its business. `variables` is what its SDK reads beside the key.
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
    """Return a provider, or say which there are."""
    found = PROVIDERS.get(name)
    if found is None:
        raise BadInput(f"unknown provider {name!r}", f"expected one of: {', '.join(PROVIDERS)}")
    return found


def well_known() -> list[str]:
    """Return the providers that need nothing but a key."""
    return [name for name, row in PROVIDERS.items() if row.needs_key]


def sdk_packages() -> set[str]:
    """Return the packages of their SDKs."""
    return {row.extra for row in PROVIDERS.values()}


def variables_of(name: str, key_env: str | None) -> tuple[str, ...]:
    """Return the variables that who calls a provider needs: the key, and what its SDK reads beside it."""
    row = provider_named(name)
    return tuple(filter(None, (key_env or row.key_env, *row.variables)))
