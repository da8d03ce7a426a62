"""The garbage collector does not stop the room while something large is loaded."""

import gc
import subprocess
import sys

import pytest

from csp.fast_start.garbage_collection import paused_collector

#: Loads something as the gateway does, and prints how often all objects were looked through meanwhile.
_LOAD = """
import gc
import csp.gateway.server
from csp.gateway.mcp_endpoint import _load
from csp.whiteboard.whiteboard import load_meaning_search

gc.collect()
gc.freeze()
full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 else None)
assert {load}()
print(len(full))
"""


def test_nothing_is_collected_meanwhile_and_everything_is_kept() -> None:
    was_kept = gc.get_freeze_count()
    try:
        with paused_collector():
            assert not gc.isenabled()

        assert gc.isenabled()
        assert gc.get_freeze_count() > was_kept
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    "load", ["_load", pytest.param("load_meaning_search", marks=pytest.mark.word_vectors)]
)
def test_large_parts_are_loaded_without_a_full_collection(load: str) -> None:
    code = [sys.executable, "-c", _LOAD.replace("{load}", load)]

    assert subprocess.run(code, capture_output=True, text=True, check=True).stdout.strip() == "0"
