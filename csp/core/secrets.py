"""Take secrets out of a text before it is kept where others search."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, NamedTuple

_MARK: Final = "[redacted {}]"
#: A literal secret shorter than this would blacken ordinary words.
_SHORTEST: Final = 8
_PLACEHOLDER: Final = re.compile(
    r"[$<{%*]|(?:your|my|the|some|example|placeholder|changeme|redacted|none|null|true|false|str|int|bytes"
    r"|os\.|process\.|env\.|self\.|settings\.|config\.)|x{3,}|\.{3}",
    re.IGNORECASE,
)
#: Words with at most a small number behind each: a name, a file, a version.
_NAME: Final = re.compile(r"/?(?:[A-Za-z]+\d{0,3}|\d{1,4})(?:[_./:-]+(?:[A-Za-z]+\d{0,3}|\d{1,4}))*")


class _Pattern(NamedTuple):
    """What a secret looks like; of a match only `group` goes, and only if it `seems` to be one.

    A text without any of the hints, in lower case, is not searched: nearly all texts have none.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    group: int
    seems: Callable[[str], bool]


def _is_random(value: str) -> bool:
    """Tell whether a value is made by a machine: letters with digits, hardly a name or a path."""
    if _PLACEHOLDER.match(value) or _NAME.fullmatch(value):
        return False
    has_both = bool(re.search(r"\d", value)) and bool(re.search(r"[A-Za-z]", value))
    return has_both and len(set(value)) >= min(8, len(value) // 2 + 1)


def _is_chosen(value: str) -> bool:
    """Tell whether a value that stands in quotes, or behind a variable's name, is a real one."""
    return not _PLACEHOLDER.match(value) and bool(re.search(r"[\d!@#%^&*+]", value))


def _is_opaque(value: str) -> bool:
    return _is_random(value) or (not value.islower() and len(value) >= 20 and not _PLACEHOLDER.match(value))


_START: Final = r"(?<![A-Za-z0-9_-])"
_NAMES: Final = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?access)?(?:[_-]?key)?|client[_-]?secret"
    r"|(?:auth|access|refresh|session|bot)?[_-]?token|passwd|password|passphrase|pwd|credentials?)"
)


def _of(name: str, hints: str, pattern: str, group: int = 0, seems: Callable[[str], bool] = bool) -> _Pattern:
    return _Pattern(name, tuple(hints.split()), re.compile(pattern), group, seems)


_WORDS: Final = "key secret token passw passphrase pwd credential"
#: The order matters: what a provider's own pattern knows is named by it.
PATTERNS: Final = (
    _of(
        "private key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----)[\s\S]){0,16384}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:\s*[A-Za-z0-9+/=:,\\-]{16,})*)",
    ),
    _of("room token", ".", _START + r"[a-z0-9-]{1,32}\.\d{1,16}\.[0-9a-f]{40}(?![0-9a-f])"),
    _of("page token", "csp-page_", r"csp-page_[A-Za-z0-9_-]{16,}"),
    _of("page link", "#link=", r"#link=([A-Za-z0-9_-]{12,})", 1),
    _of("api key", "sk-", _START + r"sk-(?:ant|proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{16,}"),
    _of("api key", "sk-", _START + r"sk-[A-Za-z0-9]{20,}", 0, _is_random),
    _of("api key", "_live_ _test_", _START + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    _of(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        _START + r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    _of("gitlab token", "glpat- gldt- glrt-", _START + r"gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}"),
    _of("aws key", "akia asia aroa aida", _START + r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _of("google key", "aiza ya29.", _START + r"(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,})"),
    _of("google secret", "gocspx-", _START + r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _of("slack token", "xox", _START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _of("slack hook", "hooks.slack", r"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,}"),
    _of("npm token", "npm_", _START + r"npm_[A-Za-z0-9]{36}"),
    _of("pypi token", "pypi-", _START + r"pypi-[A-Za-z0-9_-]{40,}"),
    _of("hugging face token", "hf_", _START + r"hf_[A-Za-z0-9]{30,}"),
    _of("sendgrid key", "sg.", _START + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _of("digitalocean token", "_v1_", _START + r"do[por]_v1_[0-9a-f]{40,}"),
    _of("json web token", "eyj", _START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _of(
        "credentials",
        "authorization",
        r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+([^\s\"'<>$]{8,})",
        1,
    ),
    _of("bearer token", "bearer", r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)", 1, _is_opaque),
    _of(
        "token",
        "x-auth-token x-api-key",
        r"(?i)\bx-(?:auth-token|api-key)[\"']?\s*[:=]\s*[\"']?([^\s\"'<>$]{8,})",
        1,
    ),
    _of(
        "password",
        "://",
        r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{0,200}:([^\s/@]{1,400})@(?=[^\s/])",
        1,
        lambda value: _PLACEHOLDER.match(value) is None,
    ),
    _of("secret", _WORDS, rf"(?i){_NAMES}[\"']?\s*[:=]\s*[\"']([^\"'\n]{{6,}})[\"']", 1, _is_chosen),
    _of("secret", _WORDS, rf"\b[A-Z0-9_]*{_NAMES.upper()}=([^\s\"'();,`]{{6,}})", 1, _is_chosen),
    _of(
        "secret",
        _WORDS,
        rf"(?i){_NAMES}(?:\s+is\s+|\s*[:=]\s*)([A-Za-z0-9+/_=~.-]{{12,}})(?![(\w\[])",
        1,
        _is_random,
    ),
)


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return `text` with a mark in place of every secret; those of `known` are taken out as they stand."""
    return _redacted(text, tuple(known))


@lru_cache(maxsize=2)
def _redacted(text: str, known: tuple[str, ...]) -> str:
    # A long text takes a tenth of a second. A shell can ask for it in a thread before it asks for a decision,
    # which then finds the answer here.
    for secret in known:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _MARK.format("room token"))
    lower = text.lower()
    for kind in PATTERNS:
        if any(hint in lower for hint in kind.hints):
            text = kind.pattern.sub(partial(_marked, kind), text)
    return text


def _marked(kind: _Pattern, found: re.Match[str]) -> str:
    value = found[kind.group]
    if value.startswith("[redacted") or not kind.seems(value):
        return found[0]
    start, end = (place - found.start() for place in found.span(kind.group))
    return found[0][:start] + _MARK.format(kind.name) + found[0][end:]
