"""JSON without the json package, beside the json package."""

import json
from typing import Any

import pytest

from csp.fast_start.fast_json import dumps, loads

VALUES: list[Any] = [
    None,
    {"a": [1, -2.5, 1e300, True, False, None, 'é\n"\\\u2028\x7f\U0001f600'], "": {}},
    [],
    "",
    [[[]]],
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back(value: Any) -> None:
    assert loads(dumps(value).encode()) == value
    assert json.loads(dumps(value)) == value
    assert loads(json.dumps(value, indent=1)) == value


@pytest.mark.parametrize("value", VALUES)
def test_it_is_written_as_the_json_package_does(value: Any) -> None:
    assert dumps(value) == json.dumps(value)
    assert dumps(value, is_ascii=False) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b"[1,]",
        b"1 2",
        b"nul",
        b"'a'",
        b'{"a" 1}',
        b'"\n"',
        b"\xff",
        b"{}x",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        loads(raw)


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        dumps([object()])


def test_blanks_around_a_value_are_nothing() -> None:
    assert loads(b' \t\n\r{"a": 1} \t\n\r') == {"a": 1}
