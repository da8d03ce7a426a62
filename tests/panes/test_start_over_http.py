"""Models that are started over HTTP or by csp add: in a pane where the room has them, else without."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.errors import BadInput, CspError, Refused
from tests.agents.api_room import KEY
from tests.models.server import ModelServer
from tests.panes.place import Place
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("api panes")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


def model_at(models: ModelServer) -> dict[str, str]:
    """Return a model of this server, by the SDK that loads fastest."""
    url = f"{models.url('api')}/v1"
    return {"provider": "openai-compatible", "model": "llama", "base-url": url}


def refusal(place: Place, **body: str) -> CspError:
    with pytest.raises(CspError) as caught:
        place.gateway.post("/agents", {"name": "x", "model": "m", **body})
    return caught.value


def test_a_room_with_panes_gives_a_model_one(place: Place) -> None:
    with ModelServer() as models:
        place.agents("ann")
        place.up()
        # The room was opened without the key: it comes with who adds the model.
        place.set(MINE=KEY)
        words = [word for key, value in model_at(models).items() for word in (f"--{key}", value)]
        done = place.csp("add", "helper", *words, "--key-env", "MINE")
        assert (done.code, done.err.strip().splitlines()[-1]) == (0, "helper is here (idle)")
        body = {key.replace("-", "_"): value for key, value in model_at(models).items()}
        second = place.gateway.post("/agents", {"name": "Helper", **body})
        assert place.csp("send", "helper", "hello", "--wait").out == "ok\n"
        shown = {pane["agent"] for pane in place.panes()}
        assert place.csp("down").code == 0

    assert second == {"success": True, "agentId": "helper-2", "state": "idle"}
    assert {"ann", "helper", "helper-2"} <= shown
    assert models.exchanges("api")[0].headers["Authorization"] == f"Bearer {KEY}"
    assert all(KEY not in command for command in place.seen_commands)


def test_a_room_without_panes_runs_a_model_in_the_background(place: Place) -> None:
    with ModelServer() as models:
        place.set(MINE=KEY, ANTHROPIC_API_KEY=KEY)
        gateway = place.start("gateway", "--port", "0")
        wait_until_sync(lambda: _answers(place), 60, "the gateway")
        body = {key.replace("-", "_"): value for key, value in model_at(models).items()}
        body = {"name": "api", "key_env": "MINE", **body}
        assert place.gateway.post("/agents", body) == {"success": True, "agentId": "api", "state": "idle"}
        assert place.csp("send", "api", "hello", "--wait").out == "ok\n"
        assert place.csp("logs", "api").code == 0
        _check_refusals(place)
        done = place.csp("down")
        gateway.communicate(timeout=30)

    assert (done.code, "ended api, gateway" in done.err) == (0, True)
    assert place.left_over() == []


def _answers(place: Place) -> Any:
    try:
        return place.gateway.get("/health")
    except (CspError, LookupError, StopIteration, AssertionError):
        return None


_HALF: Final = (
    (("--provider", "openai"), "--provider needs a model beside it"),
    (("--model", "m"), "--model needs a provider beside it"),
    (("--provider", "openai", "--model", "m", "--", "sh"), "an API model has no command"),
)


def _check_refusals(place: Place) -> None:
    """Look at what is said in each case: it is what csp agent says."""
    for words, expected in _HALF:
        done = place.csp("add", "x", *words)
        assert (done.code, expected in done.err, done.err.count("\n")) == (2, True, 1), words
    missing = refusal(place, provider="openai")
    assert isinstance(missing, Refused)
    assert missing.message == "there is no key for openai: OPENAI_API_KEY is not set"
    unknown = refusal(place, provider="antropic")
    assert isinstance(unknown, BadInput) and unknown.message == "unknown provider 'antropic'"
    assert "needs an address" in refusal(place, provider="openai-compatible").message
    assert refusal(place, name="human", provider="anthropic").message == "name 'human' is reserved"
