"""Rare answers, files and values that the light parts have to take."""

import math
import os
from pathlib import Path
from unittest import mock

import pytest

from csp.fast_start import fast_http, process_environment, room_files
from csp.fast_start.fast_json import dumps, loads


def answer(data: bytes) -> tuple[int, bytes]:
    pieces = iter([data])
    return fast_http._read_answer(lambda _: next(pieces, b""))


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body_whatever_they_say(status: int) -> None:
    assert answer(b"HTTP/1.1 %d x\r\nContent-Length: 5\r\n\r\n" % status) == (status, b"")


def test_chunked_may_be_written_in_capitals() -> None:
    assert answer(b"HTTP/1.1 200 x\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n") == (200, b"ok")


def test_a_head_without_an_end_is_given_up() -> None:
    with pytest.raises(ConnectionError, match="incomplete"):
        answer(b"HTTP/1.1 200 x\r\n" + b"x" * (1 << 17))


def test_a_failed_connection_is_timed_and_closed() -> None:
    with mock.patch.object(fast_http._socket, "socket") as made:  # type: ignore[attr-defined]  # the module's own
        made.return_value.connect.side_effect = OSError("refused")
        with pytest.raises(OSError, match="refused"):
            fast_http._connect(fast_http.Url("http://127.0.0.1:9"), 2.5)

    made.return_value.settimeout.assert_called_with(2.5)
    assert made.return_value.close.called


def test_without_a_home_there_is_no_place() -> None:
    with mock.patch.object(process_environment, "home", return_value=""):
        assert process_environment.state_dir({}) == ""


def test_infinite_numbers_keep_their_sign() -> None:
    assert loads("[-Infinity, Infinity]") == [-math.inf, math.inf]


def test_a_key_that_is_no_text_is_refused_not_left_out() -> None:
    with pytest.raises(TypeError):
        dumps({(1, 2): 3})


def test_a_room_file_may_be_long_but_no_link(tmp_path: Path) -> None:
    path = tmp_path / "room.json"
    path.write_text(dumps({"url": "u" * 1000, "supervisor": os.getpid()}))
    found = room_files.read_running(str(path))
    assert found and len(found["url"]) == 1000
    (tmp_path / "link.json").symlink_to(path)
    assert room_files.read_running(str(tmp_path / "link.json")) is None


def test_a_number_too_large_for_a_process_does_no_harm() -> None:
    assert room_files._is_alive(1 << 80)
