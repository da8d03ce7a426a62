"""End tasks that wait for NATS."""

import asyncio
from typing import Any, Final

_AGAIN_S: Final = 0.2


async def end_task(task: "asyncio.Task[Any] | None") -> None:
    """Cancel a task, and return when it has ended.

    It is cancelled again until then: the client of NATS waits in a way in which a cancellation is lost if the
    answer comes at the same moment.
    """
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_AGAIN_S)
