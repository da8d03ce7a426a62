"""The names of streams and subjects."""

from typing import Final
from zlib import crc32

#: Rooms share a few streams, because thousands of subjects are cheap and thousands of streams are not.
SHARDS: Final = 8


def shard_of(room: str) -> int:
    """Return the number of the stream that holds a room."""
    return crc32(room.encode()) % SHARDS


def stream_name(shard: int) -> str:
    """Return the name of a stream."""
    return f"CSP_J_{shard}"


def log_subject(room: str) -> str:
    """Return the subject of a room's batches."""
    return f"csp.j.{shard_of(room)}.{room}"


def patch_subject(room: str, first_seq: str, shard: str = "") -> str:
    """Return the subject of what stands for a removed batch; `*` for all, of a room or of a shard."""
    return f"csp.p.{shard or shard_of(room)}.{room}.{first_seq}"


def news_subject(room: str) -> str:
    """Return the subject to which a room's batches are republished."""
    return f"csp.e.{shard_of(room)}.{room}"


def heartbeat_subject(process: str) -> str:
    """Return the subject on which a process says that it lives; `*` for that of all of them."""
    return f"csp.hb.{process}"


def call_subject(process: str, room: str) -> str:
    """Return the subject of the commands that a process decides for a room."""
    return f"csp.c.{process}.{room}"


def answer_subject(process: str, room: str) -> str:
    """Return the subject of the answers to the commands that a process has passed on."""
    return f"csp.a.{process}.{room}"


def presence_subject(room: str) -> str:
    """Return the subject on which gateways tell who is connected to them."""
    return f"csp.w.{room}"


def screen_subject(room: str, agent: str) -> str:
    """Return the subject of the live frames of an agent."""
    return f"csp.l.{room}.{agent}"


def wish_subject(room: str) -> str:
    """Return the subject on which gateways say whose live frames they want."""
    return f"csp.v.{room}"


def interrupt_subject(room: str) -> str:
    """Return the subject of interrupts that do not wait for the log."""
    return f"csp.x.{room}"


def page_subject(room: str, page: str) -> str:
    """Return the subject of a page's login; `*` for those of all pages of a room."""
    return f"csp.k.{room}.{page}"
