import threading
from collections.abc import AsyncIterator

import pytest

from csp.journal import DiskThread


@pytest.fixture
async def disk() -> AsyncIterator[DiskThread]:
    disk = DiskThread()
    yield disk
    await disk.close()


async def test_work_is_done_in_order_in_one_thread(disk: DiskThread) -> None:
    threads = [disk.run(threading.get_ident) for _ in range(3)]
    await disk.settle()

    # Settling waits for everything before it.
    assert [thread.done() for thread in threads] == [True] * 3
    assert len({thread.result() for thread in threads} - {threading.get_ident()}) == 1


async def test_an_error_reaches_its_caller_and_no_other(disk: DiskThread) -> None:
    def fail() -> int:
        raise OSError("no")

    failing, following = disk.run(fail), disk.run(lambda: 2)
    with pytest.raises(OSError, match="no"):
        await failing

    assert await following == 2


async def test_a_caller_that_no_longer_waits_is_no_error(
    disk: DiskThread, caplog: pytest.LogCaptureFixture
) -> None:
    may_go_on, done = threading.Event(), list[int]()

    def slow() -> None:
        may_go_on.wait(120)
        done.append(1)

    disk.run(slow).cancel()
    may_go_on.set()
    await disk.settle()

    assert (done, caplog.messages) == ([1], [])


async def test_closing_waits_for_the_work() -> None:
    disk, done = DiskThread(), list[int]()
    working = [disk.run(lambda number=number: done.append(number)) for number in range(3)]  # type: ignore[misc]
    await disk.close()

    assert done == [0, 1, 2]
    for work in working:
        await work


async def test_a_user_of_a_shared_thread_ends_without_the_others(disk: DiskThread) -> None:
    one, other, done = disk.shared(), disk.shared(), list[int]()
    working = one.run(lambda: done.append(1))
    await one.close()
    assert done == [1]
    await working

    assert await other.run(lambda: 2) == 2
