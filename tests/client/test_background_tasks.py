"""Work beside the caller: who is first, who is cancelled, what a thread leaves behind."""

import asyncio
import threading

from csp.client.background_tasks import in_thread, until_first
from tests.waiting import wait_until


async def test_of_several_that_end_at_once_the_first_named_counts() -> None:
    async def give(value: int) -> int:
        return value

    assert [await until_first(*[give(number) for number in range(10)]) for _ in range(5)] == [0] * 5


async def test_the_others_have_ended_before_the_caller_goes_on() -> None:
    ended: list[str] = []

    async def give() -> str:
        return "first"

    async def end_slowly() -> str:
        try:
            forever: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await forever
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append("slowly")

    async def first() -> str:
        await asyncio.sleep(0)
        return await give()

    assert await until_first(end_slowly(), first()) == "first"
    assert ended == ["slowly"]


async def test_a_caller_that_is_cancelled_leaves_its_thread_behind() -> None:
    may_end = threading.Event()
    threads: list[threading.Thread] = []
    failed: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(context))

    def work() -> None:
        threads.append(threading.current_thread())
        assert may_end.wait(60)

    calling = asyncio.ensure_future(in_thread(work))
    await wait_until(lambda: threads, what="the thread")
    calling.cancel()
    await asyncio.wait([calling], timeout=60)
    was_left = calling.cancelled() and threads[0].is_alive()
    may_end.set()
    await wait_until(lambda: not threads[0].is_alive(), what="the end of the thread")
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    # A program ends without waiting for such a thread.
    assert (was_left, threads[0].daemon, failed) == (True, True, [])


def test_a_thread_may_outlive_the_loop_of_its_caller() -> None:
    may_end = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        assert may_end.wait(60)

    async def leave() -> None:
        calling = asyncio.ensure_future(in_thread(work))
        await wait_until(lambda: threads, what="the thread")
        calling.cancel()

    asyncio.run(leave())
    raised: list[object] = []
    before, threading.excepthook = threading.excepthook, lambda given: raised.append(given.exc_value)
    try:
        may_end.set()
        threads[0].join(60)
    finally:
        threading.excepthook = before

    assert raised == []
