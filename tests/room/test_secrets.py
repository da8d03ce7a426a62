"""The tests of what is taken out of a note."""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from csp.room import secrets
from csp.room.secrets import PATTERNS, REACH, STEP, redact

SECRETS = [
    "sk-proj-abcDEF123456ghijKLMN7890",
    "sk-ant-api03-AbCdEf_123-45678901234",
    "use sk-1234567890abcdefghijklmn ok",
    "STRIPE sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "ghp_" + "a1B2" * 9,
    "github_pat_11ABCDEFG0123456789abcd",
    "glpat-AbCdEf123456789_-xyz",
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "Sy1_-" * 7,
    "ya29.a0AfH6SMBx1234567890abc",
    "GOCSPX-abcdefgh1234567890ij",
    "xoxb-1234567890-abcdef",
    "https://hooks.slack.com/services/T00000000/B00000000/abcdefgh12345678",
    "npm_" + "a1" * 18,
    "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 8,
    "hf_" + "aB3" * 12,
    "SG.abcdefghij123456.abcdefghij1234567890",
    "dop_v1_" + "0a" * 20,
    "Authorization: Bearer abc123def456ghi7",
    '{"authorization": "Basic dXNlcjpwYXNz"}',
    "curl -H 'X-Auth-Token: 8f14e45fceea167a'",
    "x-api-key: 8f14e45fceea167a",
    "Bearer eyXYZ0123456789abcd.def",
    "bearer abcdefghijABCDEFGHIJ",
    "eyJhbGciOiJI.eyJzdWIiOiIx.sig",
    "postgres://bob:hunter2@db/x",
    'password = "hunter2!"',
    "DB_PASSWORD=s3cr3tpw",
    "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1",
    "CSP_AUTH_TOKEN=0123456789abcdef0123456789abcdef01234567",
    "token: 9aF3kk2LpQ77zzX1",
    "the token is 9aF3kk2LpQ77zzX1q",
    "claude-2.3." + "ab12" * 10,
    "csp-page_" + "aZ9_" * 6,
    "http://127.0.0.1:8765/#link=AbCdEf123456789",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234567890\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUA",
]
LOOK_ALIKES = [
    "commit d49623cabc0123456789abcdef0123456789abcd",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000",
    "token = read_token(request)",
    "token: str = ''",
    "def f(password: str | None = None)",
    "api_key = os.environ['OPENAI_API_KEY']",
    "Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "bearer authentication is needed",
    "bearer_token_middleware_for_tests",
    "sk-learn-pipeline and task-1234567890abcdefghijk",
    "sk-aaaaaaaaaaaaaaaaaaaaaaaa",
    "AKIA is a prefix",
    "ghp_short",
    "csp-page tokens end with the page",
    "git@github.com:org/repo.git",
    "http://host:8080/@scope/pkg",
    "postgres://user@host/db",
    "password: required",
    'password="changeme"',
    "password=None",
    "PASSWORD=$DB_PASSWORD1",
    "max_tokens=4096",
    "CSP_SOFT_TOKENS=50000",
    "token_count=123456789",
    "OPENAI_API_KEY is not set",
    "token=token",
    "token: test_wire_roundtrip_v2",
    "next_page_token=page_token_from_step_2",
    "secret: see tests/gateway/test_secrets.py:42",
    "secrets.token_hex(16)",
    "test_token_expires_after_2_days fails",
    "-----BEGIN CERTIFICATE-----",
]


@pytest.mark.parametrize("text", SECRETS)
def test_secret_is_taken_out(text: str) -> None:
    assert "[redacted " in redact(text)


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_what_is_around_a_secret_stays() -> None:
    text = "before postgres://bob:hunter2@db/x after, Bearer abc123def456ghi7jkl end"

    assert (
        redact(text)
        == "before postgres://bob:[redacted password]@db/x after, Bearer [redacted bearer token] end"
    )


def test_the_rest_behind_a_private_key_stays() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234567890\n-----END PRIVATE KEY-----"

    assert redact(f"a\n{key}\nb {key}") == "a\n[redacted private key]\nb [redacted private key]"


def test_known_secret_is_taken_out_wherever_it_stands() -> None:
    room = "d49623cabc0123456789abcdef0123456789abcd"

    assert redact(f"it is ({room})", (room, "short")) == "it is ([redacted room token])"


def test_literal_that_is_too_short_is_no_secret() -> None:
    assert redact("a short word", ("short",)) == "a short word"


@pytest.mark.parametrize("text", SECRETS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


def test_every_pattern_is_of_use() -> None:
    for kind in PATTERNS:
        assert any(kind.pattern.search(text) for text in SECRETS), kind.name


# --- long texts ----------------------------------------------------------------------------------

_KEY_TEXT = "-----BEGIN PRIVATE KEY-----\n" + "QUJD1234abcd5678\n" * 900 + "-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("secret", "mark"),
    [
        ("sk-ant-abcdefghij0123456789", "[redacted api key]"),
        ("sk-ant-" + "a1B2" * 20_000, "[redacted api key]"),
        (_KEY_TEXT, "[redacted private key]"),
        ("token: " + "aB3dE5gH7j" * 6000, "token: [redacted secret]"),
        ("token: " + "aB3dE5gH7j" * 6000 + "(", "token: " + "aB3dE5gH7j" * 6000 + "("),
        ("API_KEY=abc123def", "API_KEY=[redacted secret]"),
        ("https://u:pa55w0rd@host/", "https://u:[redacted password]@host/"),
    ],
    ids=["key", "long key", "private key", "long token", "call", "variable", "address"],
)
@pytest.mark.parametrize("at", [0, STEP - 40, STEP - 5, STEP, STEP + REACH - 20, 2 * STEP - 3])
def test_a_secret_is_found_wherever_it_stands_in_a_long_text(secret: str, mark: str, at: int) -> None:
    before, after = ("word " * at)[: max(at - 1, 0)] + "\n", "\n" + "word " * STEP

    assert redact(before + secret + after) == before + mark + after


def test_no_pattern_sees_more_of_a_long_text_than_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Watched:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
            seen.append(end - start)
            return self._pattern.finditer(text, start, end)

    kinds = [kind._replace(pattern=cast(Any, Watched(kind.pattern))) for kind in secrets.PATTERNS]
    monkeypatch.setattr(secrets, "PATTERNS", kinds)
    text = "token: x API_KEY=abc123def " * 10_000

    assert "abc123def" not in redact(text)
    assert max(seen) == STEP + REACH < len(text) / 4
