"""Damage a file as disks, crashes, backups and people do."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

Damage = Callable[[Path, random.Random], None]


def _bytes(change: Callable[[bytearray, random.Random], bytearray]) -> Damage:
    def damage(path: Path, draw: random.Random) -> None:
        path.write_bytes(change(bytearray(path.read_bytes()), draw))

    return damage


def _lines(change: Callable[[list[bytes], random.Random], list[bytes]]) -> Damage:
    def damage(path: Path, draw: random.Random) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(change(lines, draw) if lines else []))

    return damage


def _cut(data: bytearray, draw: random.Random) -> bytearray:
    return data[: draw.randint(0, len(data))]


def _flip(data: bytearray, draw: random.Random) -> bytearray:
    for _ in range(draw.choice((1, 1, 8))):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def _zero(data: bytearray, draw: random.Random) -> bytearray:
    at = draw.randint(0, len(data))
    size = min(draw.choice((16, 512, 4096)), len(data) - at)
    data[at : at + size] = bytes(size)
    return data


def _noise(data: bytearray, draw: random.Random) -> bytearray:
    at = draw.randint(0, len(data))
    size = min(draw.choice((16, 512, 4096)), len(data) - at)
    data[at : at + size] = draw.randbytes(size)
    return data


def _hole(data: bytearray, draw: random.Random) -> bytearray:
    at = draw.randint(0, len(data))
    del data[at : at + draw.choice((1, 16, 512))]
    return data


def _twice(lines: list[bytes], draw: random.Random) -> list[bytes]:
    at = draw.randrange(len(lines))
    count = draw.choice((1, 3, len(lines)))
    return lines[: at + count] + lines[at : at + count] + lines[at + count :]


def _missing(lines: list[bytes], draw: random.Random) -> list[bytes]:
    at = draw.randrange(len(lines))
    return lines[:at] + lines[at + draw.choice((1, 3)) :]


def _swapped(lines: list[bytes], draw: random.Random) -> list[bytes]:
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def _shuffled(lines: list[bytes], draw: random.Random) -> list[bytes]:
    at = draw.randrange(len(lines))
    part = lines[at : at + 10]
    draw.shuffle(part)
    return lines[:at] + part + lines[at + 10 :]


def _folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()
    if draw.random() < 0.5:
        (path / "inside").write_bytes(b"x")


def _dangling(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(draw.choice(("nowhere", path.name, "/dev/null", "..")))


def _link(path: Path, draw: random.Random) -> None:
    """Put a link to the real file in its place, as people do to move a folder."""
    aside = path.with_name(f"{path.name}.moved")
    path.rename(aside)
    path.symlink_to(aside.name)


def _pipe(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _forbid(path: Path, draw: random.Random) -> None:
    path.chmod(draw.choice((0o000, 0o400, 0o200, 0o777)))


def _of_another(path: Path, draw: random.Random) -> None:
    others = [one for one in path.parent.iterdir() if one.is_file() and one != path]
    shutil.copyfile(draw.choice(others) if others else "/etc/hostname", path)


def _foreign(path: Path, draw: random.Random) -> None:
    """Leave files beside it that are not ours."""
    stem = path.name.partition(".")[0]
    for name in (f"{path.name}.tmp", f"{path.name}.new", f"{stem}-{draw.getrandbits(16)}{path.suffix}", ".x"):
        path.with_name(name).write_bytes(draw.randbytes(draw.choice((0, 5, 5000))))


def _deep(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.choice((b"[", b'{"a":')) * 200_000)


#: Every kind of damage by its name.
KINDS: Final[dict[str, Damage]] = {
    "cut": _bytes(_cut),
    "flipped bits": _bytes(_flip),
    "zeros": _bytes(_zero),
    "noise": _bytes(_noise),
    "a hole": _bytes(_hole),
    "the file twice": _bytes(lambda data, draw: data + data),
    "a mark in front": _bytes(lambda data, draw: bytearray(b"\xef\xbb\xbf") + data),
    "empty": _bytes(lambda data, draw: bytearray()),
    "other line ends": _bytes(lambda data, draw: data.replace(b"\n", b"\r\n")),
    "lines twice": _lines(_twice),
    "lines missing": _lines(_missing),
    "two lines swapped": _lines(_swapped),
    "lines shuffled": _lines(_shuffled),
    "gone": lambda path, draw: path.unlink(),
    "a folder": _folder,
    "a link to nothing of use": _dangling,
    "a link to itself, moved": _link,
    "a pipe": _pipe,
    "other permissions": _forbid,
    "the content of another file": _of_another,
    "foreign files beside it": _foreign,
    "deep nesting": _deep,
}
