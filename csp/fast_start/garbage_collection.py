"""Load large modules without garbage collection pauses."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause garbage collection in this block and exclude the loaded objects from all later collections.

    Loading creates enough objects to trigger a full collection, which stops every thread of the
    process for about 0.1 s. The loaded objects are never freed anyway.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
