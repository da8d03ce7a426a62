from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.journal.line_reader import blocks_back, blocks_forward, line_at, split

LINES = [b"one", b"", b"a longer line", b"x" * 50, b"last"]
WHOLE = b"".join(line + b"\n" for line in LINES)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(WHOLE)
    with path.open("rb") as file:
        yield file.fileno()


@pytest.mark.parametrize("block_bytes", range(1, len(WHOLE) + 3))
def test_blocks_of_any_size_hold_whole_lines(fd: int, block_bytes: int) -> None:
    forward = list(blocks_forward(fd, 0, len(WHOLE), block_bytes))
    back = list(blocks_back(fd, len(WHOLE), 0, block_bytes))

    for blocks in (forward, back[::-1]):
        assert b"".join(data for _, data in blocks) == WHOLE
        assert all(data.endswith(b"\n") for _, data in blocks)
        assert all(WHOLE[offset:].startswith(data) for offset, data in blocks)


@pytest.mark.parametrize("block_bytes", range(1, len(WHOLE) + 3))
def test_reading_back_stops_at_its_start(fd: int, block_bytes: int) -> None:
    start = WHOLE.index(b"a longer")
    back = list(blocks_back(fd, len(WHOLE), start, block_bytes))

    assert b"".join(data for _, data in back[::-1]) == WHOLE[start:]


def test_only_a_file_without_its_last_newline_yields_half_a_line(fd: int) -> None:
    end = len(WHOLE) - 3
    blocks = list(blocks_forward(fd, 0, end, 4))

    assert b"".join(data for _, data in blocks) == WHOLE[:end]
    assert [data for _, data in blocks if not data.endswith(b"\n")] == [b"la"]


def test_a_piece_is_split_into_placed_lines() -> None:
    found = list(split(100, WHOLE))

    assert [line for _, line in found] == LINES
    assert all(WHOLE[offset - 100 :].startswith(line + b"\n") for offset, line in found)


def test_a_line_is_read_by_its_place(fd: int) -> None:
    for offset, line in split(0, WHOLE):
        assert line_at(fd, offset, len(WHOLE)) == line


def test_a_long_line_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000 + b"\nrest\n")
    with path.open("rb") as file:
        assert line_at(file.fileno(), 0, 100_006) == b"x" * 100_000
