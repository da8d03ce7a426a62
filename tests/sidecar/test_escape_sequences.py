"""Operating system commands are picked out within bounds."""

import pytest

from csp.sidecar.emulator.escape_sequences import OscReader


@pytest.mark.parametrize(("number", "is_title"), [(0, True), (1, False), (2, True), (9, False)])
def test_only_two_of_them_are_the_title(number: int, is_title: bool) -> None:
    reader = OscReader()
    reader.feed(b"\x1b]%d;text\x07" % number)

    assert reader.drain() == [(number, "text")]
    assert reader.title == ("text" if is_title else "")


@pytest.mark.parametrize("is_in_pieces", [True, False])
def test_one_that_is_too_long_is_left_out_but_not_the_next(is_in_pieces: bool) -> None:
    reader = OscReader()
    data = b"\x1b]0;" + b"x" * 4100 + b"\x07\x1b]0;next\x07"
    for piece in [data[at : at + 1000] for at in range(0, len(data), 1000)] if is_in_pieces else [data]:
        reader.feed(piece)

    assert reader.drain() == [(0, "next")]


def test_only_the_newest_thousand_wait() -> None:
    reader = OscReader()
    for number in range(1001):
        reader.feed(b"\x1b]9;%d\x07" % number)

    found = reader.drain()
    assert (len(found), found[0]) == (1000, (9, "1"))


def test_one_that_is_cancelled_or_cut_at_its_escape() -> None:
    reader = OscReader()
    reader.feed(b"\x1b]0;gone\x18\x1b")
    reader.feed(b"]0;here\x1b\\")

    assert reader.drain() == [(0, "here")]
