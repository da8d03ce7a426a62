"""Values read from text and from toml, at the edges of what is taken."""

from pathlib import Path
from typing import Any

import pytest

from csp import setting_types
from csp.errors import BadInput
from csp.setting_types import SettingType, read_text, read_toml

#: A kind, what it takes with what that means, what it refuses.
CASES: list[tuple[SettingType[Any], dict[str, Any], list[str]]] = [
    (setting_types.PORT, {"0": 0, "65535": 65535}, ["65536", "-1", "1.0", "", "0x1", "１"]),
    (setting_types.COUNT, {"1": 1, "9007199254740992": 2**53}, ["0", "9007199254740993", "1e3"]),
    (setting_types.FROM_NOTHING, {"0": 0, "12": 12}, ["-1", ""]),
    (
        setting_types.NUMBER,
        {"1": 1.0, "0.5": 0.5, "0.000000001": 1e-9},
        ["0", "0.0", "-1", ".5", "1.", "inf", "nan"],
    ),
    (setting_types.FROM_ZERO, {"0": 0.0, "2.5": 2.5}, ["-1", "0.0"]),
    (setting_types.COST, {"none": None, "2": 2.0}, ["0", "nothing"]),
    (setting_types.LINE, {"a b": "a b"}, ["", "a\nb", "a\x00"]),
    (
        setting_types.BOOLEAN,
        {
            "1": True,
            "TRUE": True,
            "yes": True,
            "on": True,
            "0": False,
            "False": False,
            "NO": False,
            "off": False,
        },
        ["", "2", "y"],
    ),
    (setting_types.PATH, {"/a/b": Path("/a/b")}, ["", "a\0b"]),
    (setting_types.COMMAND, {"a 'b c'": ("a", "b c")}, ["", "   ", "'", "a\0"]),
    (setting_types.ROOM, {"a-1": "a-1", "a" * 32: "a" * 32}, ["", "A", "a_b", "a" * 33, "a\n"]),
    (
        setting_types.WEB,
        {"http://a": "http://a", "https://a:1/b": "https://a:1/b"},
        ["ftp://a", "http://", "http://u@a", "http://a:0", "http://a:99999", "http://a?b", "http://a b"],
    ),
    (setting_types.PROVIDER, {"local": "local", "openai": "openai"}, ["locals", ""]),
    (setting_types.DURABILITY, {"none": "none", "flush": "flush", "fsync": "fsync"}, ["sync", ""]),
]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(kind, text, value) for kind, good, _ in CASES for text, value in good.items()],
)
def test_a_good_text_is_read(kind: SettingType[Any], text: str, value: Any) -> None:
    found = read_text(kind, text, "--flag")

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, _, bad in CASES for text in bad])
def test_a_bad_text_is_refused_with_what_was_expected(kind: SettingType[Any], text: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_text(kind, text, "--flag")

    assert refused.value.message == f"--flag: expected {kind.expected}, got {text!r}"


def test_a_bad_secret_is_not_repeated() -> None:
    with pytest.raises(BadInput) as refused:
        read_text(setting_types.LINE, "my\nsecret", "TOKEN", is_secret=True)

    assert refused.value.message == "TOKEN: expected one line of text"


def test_what_is_expected_is_said_with_its_span() -> None:
    assert setting_types.PORT.expected == "a whole number from 0 to 65535"
    assert setting_types.COUNT.expected == "a whole number from 1"


FILE = Path("/etc/csp/csp.toml")


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (setting_types.PATH, "sub/x", Path("/etc/csp/sub/x")),
        (setting_types.PATH, "/x", Path("/x")),
        (setting_types.COMMAND, ["a", "b c"], ("a", "b c")),
        (setting_types.COMMAND, "a b", ("a", "b")),
        (setting_types.NUMBER, 2, 2.0),
        (setting_types.COST, "none", None),
        (setting_types.BOOLEAN, True, True),
    ],
)
def test_a_value_of_a_file_has_a_type_of_its_own(
    kind: SettingType[Any], value: object, found: object
) -> None:
    assert read_toml(kind, value, FILE, "room.x") == found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (setting_types.COUNT, "1"),
        (setting_types.COUNT, True),
        (setting_types.BOOLEAN, 1),
        (setting_types.COMMAND, ["a", 1]),
        (setting_types.LINE, ["a"]),
        (setting_types.NUMBER, -1.0),
    ],
)
def test_a_value_of_another_type_is_refused_by_file_and_key(kind: SettingType[Any], value: object) -> None:
    with pytest.raises(BadInput, match=r"/etc/csp/csp\.toml: room\.x: expected"):
        read_toml(kind, value, FILE, "room.x")
