"""What the bytes of a terminal are taken for."""

import pytest

from csp.agents.demo.key_decoder import _SPELLINGS, Key, Keys, Text


def heard(*pieces: bytes) -> list[Text | Key]:
    keys = Keys()
    return [one for piece in pieces for one in keys.feed(piece)]


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("enter", [b"\r"]),
        ("newline", [b"\n", b"\x1b\r", b"\x1b\n"]),
        ("backspace", [b"\x7f", b"\x08"]),
        ("delete", [b"\x1b[3~"]),
        ("up", [b"\x1b[A", b"\x1bOA", b"\x10"]),
        ("down", [b"\x1b[B", b"\x1bOB", b"\x0e"]),
        ("right", [b"\x1b[C", b"\x1bOC", b"\x06"]),
        ("left", [b"\x1b[D", b"\x1bOD", b"\x02"]),
        ("home", [b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"\x01"]),
        ("end", [b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x05"]),
        ("ctrl-c", [b"\x03"]),
        ("ctrl-d", [b"\x04"]),
        ("ctrl-k", [b"\x0b"]),
        ("ctrl-l", [b"\x0c"]),
        ("ctrl-u", [b"\x15"]),
        ("ctrl-w", [b"\x17", b"\x1b\x7f"]),
        ("ctrl-z", [b"\x1a"]),
    ],
)
def test_a_key_is_known_in_each_of_its_spellings(name: str, spellings: list[bytes]) -> None:
    assert [heard(spelling) for spelling in spellings] == [[Key(name)]] * len(spellings)
    assert tuple(spellings) == _SPELLINGS[name]


def test_a_key_may_come_in_pieces() -> None:
    assert heard(b"a\x1b", b"[", b"Ab", "ü".encode()[:1], "ü".encode()[1:]) == [
        Text("a"),
        Key("up"),
        Text("b"),
        Text("ü"),
    ]


def test_what_nobody_knows_means_nothing() -> None:
    assert heard(b"\x1b[99~\x1b]11;rgb:0/0/0\x07\x1bP1$r\x1b\\\x00x") == [Text("x")]


def test_a_paste_is_one_text_with_lines_of_one_kind() -> None:
    pasted = heard(b"\x1b[200~one\r\ntwo\rthr", b"ee\x1b[A\nfour\x1b[201", b"~!")

    assert pasted == [Text("one\ntwo\nthree\x1b[A\nfour", is_pasted=True), Text("!")]


def test_a_lone_escape_is_a_key_once_nothing_follows() -> None:
    keys = Keys()

    assert (keys.feed(b"\x1b"), keys.is_waiting) == ([], True)
    assert keys.flush() == [Key("escape")]
    assert (keys.is_waiting, keys.flush()) == (False, [])


def test_an_unfinished_sequence_is_escape_with_what_was_typed() -> None:
    keys = Keys()
    keys.feed(b"\x1b[")

    assert keys.flush() == [Key("escape"), Text("[")]


def test_two_escapes_are_two_keys() -> None:
    keys = Keys()

    assert keys.feed(b"\x1b\x1b") == [Key("escape")]
    assert keys.flush() == [Key("escape")]


def test_an_unfinished_paste_is_waited_for() -> None:
    keys = Keys()
    keys.feed(b"\x1b[200~half")

    assert not keys.is_waiting
    assert keys.flush() == []
    assert keys.feed(b" and half\x1b[201~") == [Text("half and half", is_pasted=True)]
