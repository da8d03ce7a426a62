"""Copy a room's journal into a cluster or out of it, and compare journals."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from csp.cli.arguments import ANY, INSECURE, JSON, NATS, Forms, switch, takes, value
from csp.cli.output import Progress, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput
from csp.setting_types import ROOM, read_text

if TYPE_CHECKING:
    from csp.cluster.journal_copy import ClusterJournal, Difference, FileJournal

T = TypeVar("T")
_FORMS: Final = Forms("journal", default="compare")
_SCHEMES: Final = ("nats://", "tls://")
_SHOWN: Final = 120


@takes(
    value(
        "form",
        "FORM",
        "copy FROM TO, or compare A B ...; each a journal file, a folder with one, or a room of a cluster: "
        "nats://HOST:4222,nats://HOST:4222/ROOM",
        nargs="*",
    ),
    switch("--resume", "with copy: continue an interrupted copy into a cluster"),
    *NATS,
    INSECURE,
    JSON,
    examples=(
        "csp journal copy ~/.local/share/csp/history/review nats://127.0.0.1:4222/review",
        "csp journal copy tls://n1.lan,tls://n2.lan,tls://n3.lan/review review-backup",
        "csp journal compare gateway-1/review gateway-2/review tls://n1.lan/review",
    ),
)
def journal(call: VerbCall) -> int:
    """Run the form named by the first word."""
    return _FORMS.do(call)


@_FORMS.form("copy", 2, ("resume",))
def _copy(call: VerbCall, words: list[str]) -> int:
    if len(words) != 2:
        raise BadInput("expected copy FROM TO", "see: csp journal --help")
    count = _run(_copied(call, *words))
    return call.tell({"lines": count, "from": words[0], "to": words[1]}, f"copied {count:,} lines")


async def _copied(call: VerbCall, source: str, target: str) -> int:
    from csp.cluster.journal_copy import ClusterJournal

    is_resumed = bool(call.args.resume)
    if is_resumed and not target.startswith(_SCHEMES):
        raise BadInput(
            "--resume is for a copy into a cluster", "a file has its name only when it is complete"
        )
    async with AsyncExitStack() as stack:
        read = await stack.enter_async_context(_opened(call, source))
        written = await stack.enter_async_context(_opened(call, target))
        progress = stack.enter_context(Progress())

        def show(count: int) -> None:
            progress.show(f"copied {count:,} lines…")

        if not isinstance(written, ClusterJournal):
            return await written.write(read, show)
        try:
            return await written.write(read, show, is_resumed=is_resumed)
        except asyncio.CancelledError:
            progress.clear()
            talk("stopped; continue with the same command and --resume")
            raise


@_FORMS.form("compare", ANY)
def _compare(call: VerbCall, words: list[str]) -> int:
    if len(words) < 2:
        raise BadInput("expected compare A B ...", "see: csp journal --help")
    return _run(_compared(call, words))


async def _compared(call: VerbCall, words: list[str]) -> int:
    from csp.cluster.journal_copy import compare

    async with AsyncExitStack() as stack:
        journals = [await stack.enter_async_context(_opened(call, word)) for word in words]
        with Progress() as progress:
            found = await compare(journals, lambda count: progress.show(f"compared {count:,} lines…"))
    if not found.differences:
        answer = {"equal": True, "lines": found.lines}
        return call.show(answer, [f"equal: {len(words)} journals of {found.lines:,} lines"])
    first = journals[0].name
    lines = [line for difference in found.differences for line in _shown(first, difference)]
    rows = [
        {"name": one.name, "line": one.number, "expected": _text(one.expected), "found": _text(one.found)}
        for one in found.differences
    ]
    call.show({"equal": False, "lines": found.lines, "differences": rows}, lines)
    return 1


def _shown(first: str, difference: "Difference") -> list[str]:
    return [
        f"{difference.name} differs from {first} in line {difference.number}:",
        f"  {first}: {_start(difference.expected)}",
        f"  {difference.name}: {_start(difference.found)}",
    ]


def _text(line: bytes | None) -> str | None:
    return None if line is None else line.decode(errors="replace")


def _start(line: bytes | None) -> str:
    if line is None:
        return "ends before it"
    text = line.decode(errors="replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@asynccontextmanager
async def _opened(call: VerbCall, text: str) -> "AsyncIterator[FileJournal | ClusterJournal]":
    """Open a journal that an argument names."""
    from csp.cluster.journal_copy import ClusterJournal, FileJournal

    if not text.startswith(_SCHEMES):
        yield FileJournal(call.cwd / Path(text).expanduser())
        return
    from csp.cluster.bus import Bus
    from csp.cluster.servers import read_servers

    servers, slash, room = text.rpartition("/")
    if not slash or servers.endswith(":/"):
        raise BadInput(f"{text!r} names no room", "write nats://HOST:4222/ROOM")
    read_text(ROOM, room, text)
    bus = await Bus.open(read_servers(servers, call.settings, is_insecure=call.args.insecure))
    try:
        yield ClusterJournal(bus, room, text)
    finally:
        await bus.close()


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
