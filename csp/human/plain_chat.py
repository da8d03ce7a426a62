"""Use the room line by line, without a terminal to draw on."""

import asyncio
import contextlib
import signal
import sys
import threading
from typing import Final, TextIO

from csp.human.chat import Chat, ChatOrder
from csp.human.theme import Theme

#: How long to wait for message deliveries after the last line.
PATIENCE_S: Final = 1.5


class PlainChat:
    """Prints lines as they arrive, and reads lines until the input ends."""

    def __init__(self, order: ChatOrder, look: Theme, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        self._end = asyncio.Event()
        self.chat = Chat(order, self, look)

    def put(self, text: str) -> None:
        """Print data to stdout."""
        self._stdout.write(f"{text}\n")
        self._stdout.flush()

    async def page(self, title: str, lines: list[str]) -> None:
        """Print a command's output without its title, which a script does not need."""
        for line in lines:
            self.put(line)

    def talk(self, text: str) -> None:
        """Print text that is not data to stderr."""
        self._stderr.write(f"{text}\n")
        self._stderr.flush()

    def bell(self) -> None:
        """Ring the bell if a user may hear it."""
        if self._stderr.isatty():
            self._stderr.write("\a")
            self._stderr.flush()

    def refresh(self) -> None:
        """Do nothing, because no part of the output is fixed on the screen."""

    def leave(self) -> None:
        """End after executing the lines typed so far."""
        self._end.set()

    async def run(self) -> int:
        """Execute all lines; return 1 if any of them failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave)
        async with self.chat:
            serving = asyncio.ensure_future(self.chat.serve())
            # Nothing is read before the room is known, because a script's first line needs the agents.
            await self.chat.ready(serving)
            serving.add_done_callback(lambda _: self._end.set())
            if not serving.done():
                threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
                await self._end.wait()
                await self.chat.finish(PATIENCE_S)
            serving.cancel()
            await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()
        return 1 if self.chat.failures else 0

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # The event loop may have ended in the meantime.
        with contextlib.suppress(RuntimeError):
            try:
                for line in self._stdin:
                    loop.call_soon_threadsafe(self.chat.enter, line)
            except (OSError, ValueError) as exc:
                loop.call_soon_threadsafe(self.talk, f"stdin cannot be read: {exc}")
            loop.call_soon_threadsafe(self._end.set)


async def run_plain(order: ChatOrder, look: Theme) -> int:
    """Use the room over stdin and stdout; return the exit code."""
    return await PlainChat(order, look, sys.stdin, sys.stdout, sys.stderr).run()
