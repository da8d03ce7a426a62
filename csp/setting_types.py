"""Parse setting values from flags, variables and files."""

import ipaddress
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from csp.errors import BadInput

T = TypeVar("T")
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9._-]{1,253}", re.ASCII)
_ROOM_NAME: Final = re.compile(r"[a-z0-9-]{1,32}")
_URL: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_ON: Final = ("1", "true", "yes", "on")
#: Maximum length of a text for an agent, in characters.
MAX_TEXT: Final = 16_000
_OFF: Final = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class SettingType(Generic[T]):
    """A type of setting; `read` raises ValueError if the text does not match `expected`."""

    expected: str
    read: Callable[[str], T]
    toml: tuple[type, ...] = (str,)


def _whole(low: int, high: int = 2**53) -> SettingType[int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,16}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    span = f"from {low}" + (f" to {high}" if high < 2**53 else "")
    return SettingType(f"a whole number {span}", read, (int,))


def _read_number(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", text) or float(text) <= 0:
        raise ValueError
    return float(text)


def _read_line(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError
    return text


def _read_words(text: str) -> str:
    """Return the text; only line breaks and tabs are allowed as control characters."""
    is_clean = re.sub(r"[\n\t]", "", text).isprintable()
    if not text.strip() or len(text) > MAX_TEXT or not is_clean:
        raise ValueError
    return text.strip()


def _read_url(text: str) -> str:
    from urllib.parse import urlsplit

    # Both properties raise ValueError for invalid addresses that the pattern accepts.
    if not _URL.fullmatch(text) or not urlsplit(text).hostname or urlsplit(text).port == 0:
        raise ValueError
    return text


def _read_origin(text: str) -> str:
    """Return a URL without a path as browsers write it in the header Origin."""
    from urllib.parse import urlsplit

    found = urlsplit(_read_url(text))
    if found.path not in ("", "/") or found.query or found.fragment:
        raise ValueError
    scheme, host = found.scheme.lower(), (found.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    is_usual = found.port in (None, {"http": 80, "https": 443}[scheme])
    return f"{scheme}://{host}" if is_usual else f"{scheme}://{host}:{found.port}"


def _read_hosts(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(_HOST_NAME.fullmatch(name) for name in names):
        raise ValueError
    return ",".join(names)


def _read_boolean(text: str) -> bool:
    if text.lower() not in _ON + _OFF:
        raise ValueError
    return text.lower() in _ON


def _read_path(text: str) -> Path:
    """Return the path, with ~ as the home directory."""
    if not text or "\0" in text:
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError as exc:
        raise ValueError from exc


def _read_command(text: str) -> tuple[str, ...]:
    words = tuple(shlex.split(text))
    if not words or "\0" in text:
        raise ValueError
    return words


def matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    """Return a parser that accepts only text matching the whole pattern."""

    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError
        return text

    return read


NUMBER: Final = SettingType("a number greater than 0", _read_number, (int, float))
FROM_ZERO: Final = SettingType(
    "a number of at least 0", lambda text: 0.0 if text == "0" else _read_number(text), (int, float)
)
PORT: Final = _whole(0, 65535)
COUNT: Final = _whole(1)
FROM_NOTHING: Final = _whole(0)
COST: Final = SettingType(
    "a number greater than 0, or none",
    lambda text: None if text == "none" else _read_number(text),
    (int, float, str),
)
LINE: Final = SettingType("one line of text", _read_line)
BOOLEAN: Final = SettingType("1 or 0", _read_boolean, (bool,))
PATH: Final = SettingType("a path", _read_path)
COMMAND: Final = SettingType("a command line", _read_command, (str, list))
ROOM: Final = SettingType("a room name of a-z, 0-9 or -, at most 32 characters long", matching(_ROOM_NAME))
GROUP: Final = SettingType("a name of a-z, 0-9 or -, at most 32 characters long", matching(_ROOM_NAME))
NAME: Final = SettingType("a name of 1 to 128 characters", matching(re.compile(r"[^\x00-\x1f\x7f]{1,128}")))
TEXT: Final = SettingType("a text of at most 16000 characters", _read_words)
VARIABLE: Final = SettingType(
    "the name of an environment variable", matching(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"))
)
WEB: Final = SettingType("an http or https URL without a user name", _read_url)
HOSTS: Final = SettingType("host names without a port, separated by commas", _read_hosts)
ORIGIN: Final = SettingType("an http or https URL without a path", _read_origin)
GATEWAYS: Final = SettingType(
    "an http or https URL without a user name, or several separated by commas",
    lambda text: ",".join(_read_url(one.strip()) for one in text.split(",")),
)
PROVIDER: Final = SettingType("local or openai", matching(re.compile("local|openai")))
ON_LIMIT: Final = SettingType("one of wait, skip, stop", matching(re.compile("wait|skip|stop")))
ON_HARD_LIMIT: Final = SettingType("ask or stop", matching(re.compile("ask|stop")))
LAYOUT: Final = SettingType("one of auto, top, left, focus", matching(re.compile("auto|top|left|focus")))
DURABILITY: Final = SettingType("one of none, flush, fsync", matching(re.compile("none|flush|fsync")))


def is_loopback(host: str) -> bool:
    """Return whether `host` is reachable only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_text(kind: SettingType[T], text: str, where: str, *, is_secret: bool = False) -> T:
    """Return the value, or raise BadInput with its source `where`."""
    try:
        return kind.read(text)
    except ValueError as exc:
        got = "" if is_secret else f", got {text!r}"
        raise BadInput(f"{where}: expected {kind.expected}{got}") from exc


def read_toml(kind: SettingType[T], value: object, path: Path, key: str) -> T:
    """Read a TOML value; a path is relative to the file that contains it."""
    where = f"{path}: {key}"
    is_words = isinstance(value, list) and all(isinstance(word, str) for word in value)
    if type(value) not in kind.toml or (isinstance(value, list) and not is_words):
        raise BadInput(f"{where}: expected {kind.expected}, got {value!r}")
    text = shlex.join(value) if isinstance(value, list) else str(value)
    found = read_text(kind, text, where)
    return path.parent / found if isinstance(found, Path) else found
