"""Redact secrets in a text before it is stored where others can search it.

Texts may be long and come from anybody. No other thread runs while a pattern is matched, so a long text is
searched in steps that let other threads run in between.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_MARK: Final = "[redacted {}]"
#: A shorter literal secret would redact ordinary words.
_SHORTEST: Final = 8
#: In one step, a secret may start within STEP characters and its match may extend REACH further. A longer one
#: is still found if it has no end delimiter, such as a key; a long quoted text is not.
STEP: Final = 32 * 1024
REACH: Final = 20 * 1024
_PLACEHOLDER: Final = re.compile(
    r"[$<{%*]|(?:your|my|the|some|example|placeholder|changeme|redacted|none|null|true|false|str|int|bytes"
    r"|os\.|process\.|env\.|self\.|settings\.|config\.)|x{3,}|\.{3}",
    re.IGNORECASE,
)
#: Words that end in at most a small number, such as a name, a file or a version.
_NAME: Final = re.compile(r"/?(?:[A-Za-z]+\d{0,3}|\d{1,4})(?:[_./:-]+(?:[A-Za-z]+\d{0,3}|\d{1,4}))*")


class _Pattern(NamedTuple):
    """A kind of secret; only `group` of a match is redacted, and only if `seems` accepts it.

    A text without any of the lower-case hints is not searched, because nearly all texts have none. A match
    always contains one of them.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    group: int
    seems: Callable[[str], bool]

    def is_hinted(self, text: str) -> bool:
        lower = text.lower()
        return any(hint in lower for hint in self.hints)


def _is_random(value: str) -> bool:
    """Return whether a value looks machine-generated: letters and digits, unlikely to be a name or a path."""
    if _PLACEHOLDER.match(value) or _NAME.fullmatch(value):
        return False
    has_both = bool(re.search(r"\d", value)) and bool(re.search(r"[A-Za-z]", value))
    return has_both and len(set(value)) >= min(8, len(value) // 2 + 1)


def _is_chosen(value: str) -> bool:
    """Return whether a value that is quoted or follows a variable's name is real and not a placeholder."""
    return not _PLACEHOLDER.match(value) and bool(re.search(r"[\d!@#%^&*+]", value))


_START: Final = r"(?<![A-Za-z0-9_-])"
_NAMES: Final = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?access)?(?:[_-]?key)?|client[_-]?secret"
    r"|(?:auth|access|refresh|session|bot)?[_-]?token|passwd|password|passphrase|pwd|credentials?)"
)
#: A lookahead for these names; it does not change results, but is faster than trying each name everywhere.
_NAME_AHEAD: Final = r"(?=[abcprstABCPRST_-])"


def _of(name: str, hints: str, pattern: str, group: int = 0, seems: Callable[[str], bool] = bool) -> _Pattern:
    return _Pattern(name, tuple(hints.split()), re.compile(pattern), group, seems)


_WORDS: Final = "key secret token passw passphrase pwd credential"
#: The order matters: a secret that matches a provider's pattern gets that provider's name.
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
    _of(
        "bearer token",
        "bearer",
        r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)",
        1,
        lambda value: (
            _is_random(value) or (not value.islower() and len(value) >= 20 and not _PLACEHOLDER.match(value))
        ),
    ),
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
    _of(
        "secret",
        _WORDS,
        rf"(?i){_NAME_AHEAD}{_NAMES}[\"']?\s*[:=]\s*[\"']([^\"'\n]{{6,}})[\"']",
        1,
        _is_chosen,
    ),
    _of("secret", _WORDS, rf"\b[A-Z0-9_]*{_NAMES.upper()}=([^\s\"'();,`]{{6,}})", 1, _is_chosen),
    _of(
        "secret",
        _WORDS,
        rf"(?i){_NAME_AHEAD}{_NAMES}(?:\s+is\s+|\s*[:=]\s*)([A-Za-z0-9+/_=~.-]{{12,}})(?![(\w\[])",
        1,
        _is_random,
    ),
)


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return `text` with a placeholder for every secret, including the literal ones in `known`."""
    return _redacted(text, tuple(known))


@lru_cache(maxsize=2)
def _redacted(text: str, known: tuple[str, ...]) -> str:
    # A long text takes a tenth of a second. A caller can do this in a thread before requesting a decision,
    # which then uses the cached result.
    for secret in known:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _MARK.format("room token"))
    # Computed before placeholders are inserted, because their words must not count as hints.
    for kind in [kind for kind in PATTERNS if kind.is_hinted(text)]:
        parts: list[str] = []
        kept = at = 0
        while at < len(text):
            for found in _in_step(kind, text, at):
                value, (start, end) = found[kind.group], found.span(kind.group)
                if not value.startswith("[redacted") and kind.seems(value):
                    parts += (text[kept:start], _MARK.format(kind.name), text[end : found.end()])
                else:
                    parts.append(text[kept : found.end()])
                kept = found.end()
            at = max(at + STEP, kept)
        text = "".join([*parts, text[kept:]])
    return text


def _in_step(kind: _Pattern, text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the matches that start within the step at `at`."""
    end = min(at + STEP + REACH, len(text))
    if not kind.is_hinted(text[at:end]):
        return
    for found in kind.pattern.finditer(text, at, end):
        if found.start() >= at + STEP:
            return
        if found.end() < end or end == len(text):
            yield found
        elif (whole := kind.pattern.match(text, found.start())) is not None:
            # The match may extend beyond the step.
            yield whole
