"""Create the streams, or check the existing ones."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from csp.cluster.bus import Bus
from csp.cluster.names import stream_name
from csp.errors import Broken, LogLost

log = logging.getLogger(__name__)

API_S: Final = 5.0
#: The servers that hold each room, where there are as many.
REPLICAS: Final = 3
_NOT_FOUND: Final = 10059
#: A server that is not part of a cluster has no replicas.
_ALONE: Final = 10074
#: How long a message id is remembered by the servers.
_DUPLICATES_NS: Final = 120 * 10**9


def stream_config(shard: int, replicas: int) -> dict[str, Any]:
    """Return the configuration of a stream, as JetStream has it."""
    return {
        "name": stream_name(shard),
        "subjects": [f"csp.j.{shard}.>", f"csp.p.{shard}.>"],
        "retention": "limits",
        # Refuse new messages when the stream is full; the default would delete the oldest events instead.
        "discard": "new",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": -1,
        "duplicate_window": _DUPLICATES_NS,
        "allow_direct": True,
        "republish": {"src": f"csp.j.{shard}.>", "dest": f"csp.e.{shard}.>"},
    }


#: A stream with another value of these loses events, or does not pass them on.
_REQUIRED: Final = (
    *("subjects", "retention", "discard", "storage", "max_age", "max_msgs_per_subject", "allow_direct"),
    "republish",
)


async def stream_info(bus: Bus, shard: int) -> dict[str, Any] | None:
    """Return the configuration and the state of a shard's stream; None if there is none."""
    name = stream_name(shard)
    answer = await bus.ask(f"STREAM.INFO.{name}", {}, timeout_s=API_S)
    if answer.get("error", {}).get("err_code") == _NOT_FOUND:
        return None
    if "error" in answer:
        raise LogLost(f"stream {name}: {answer['error'].get('description', 'unknown error')}")
    return answer


def unfit(found: Mapping[str, Any], shard: int) -> str:
    """Return why a stream with this configuration cannot hold rooms; "" if it can."""
    wanted = stream_config(shard, 1)
    for key in _REQUIRED:
        if found.get(key) != wanted[key]:
            return f"stream {wanted['name']} has {key} = {found.get(key)!r}, expected {wanted[key]!r}"
    return ""


async def open_stream(bus: Bus, shard: int, replicas: int, *, or_one: bool = False) -> None:
    """Create the stream of a shard; raise Broken if there is one that cannot hold rooms.

    With `or_one`, a server that is not part of a cluster keeps it alone.
    """
    found = await create_stream(bus, stream_config(shard, replicas), or_one=or_one)
    if problem := unfit(found, shard):
        raise Broken(problem, "was it created by something else? CSP creates its streams itself")


async def create_stream(bus: Bus, wanted: dict[str, Any], *, or_one: bool) -> dict[str, Any]:
    """Create a stream if there is none; return its configuration."""
    name = wanted["name"]
    answer = await bus.ask(f"STREAM.INFO.{name}", {}, timeout_s=API_S)
    if answer.get("error", {}).get("err_code") == _NOT_FOUND:
        # Gateways that start together may all try to create it, which is not an error.
        answer = await bus.ask(f"STREAM.CREATE.{name}", wanted, timeout_s=API_S)
        if answer.get("error", {}).get("err_code") == _ALONE and or_one:
            log.warning("one NATS server alone keeps a stream", extra={"stream": name})
            return await create_stream(bus, wanted | {"num_replicas": 1}, or_one=False)
    if "error" in answer:
        raise LogLost(f"stream {name} cannot be used: {answer['error'].get('description', 'unknown error')}")
    found: dict[str, Any] = answer["config"]
    return found
