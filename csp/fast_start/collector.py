"""Load large modules without the pauses of the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look at what was loaded again.

    Loading creates so many objects that a full collection falls into it, which stops every thread of the
    process for about 0.1 s; and what was loaded stays anyway.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
