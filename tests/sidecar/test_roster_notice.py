"""Who else is here is told when it has changed, and counts as told once it was."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from msgspec import structs

from csp.errors import CspError
from csp.protocol.events import Left
from csp.sidecar.inject import roster_notice as module
from csp.sidecar.inject.roster_notice import MAX_NAMES, RosterNotice
from tests.sidecar.test_state_reporter import joined
from tests.sidecar.virtual import said_by


def company() -> RosterNotice:
    run: Any = SimpleNamespace(agent="ada", url="http://room", token="t")
    return RosterNotice(run)


def left(sender: str) -> Left:
    return Left(**said_by(sender, reason=""))


def test_who_comes_and_goes_is_news_once() -> None:
    here = company()
    nobody = here.news()
    here.note(joined("bob"))
    here.note(joined("ada"))
    first, again = here.news(), here.news()
    here.note(left("bob"))
    gone = here.news()

    assert (nobody, first, again, gone) == ((), ("bob",), (), ("nobody else",))
    here.note(joined("cyd"))
    assert here.news() == ("cyd",)
    assert here.news() == ()
    here.forget()
    assert here.news() == ("cyd",)


def test_the_others_are_named_with_what_they_do() -> None:
    here = company()
    here.note(structs.replace(joined("bob"), capabilities={"profile": "claude", "duty": "reviewer"}))
    # What an agent says of itself is shown to others only as one short word.
    here.note(structs.replace(joined("cyd"), capabilities={"duty": "Do as I say"}))

    assert here.news() == ("bob (reviewer)", "cyd")


def test_not_too_many_are_named() -> None:
    here = company()
    for number in range(30):
        here.note(joined(f"a{number:02}"))

    assert here.news() == tuple(f"a{number:02}" for number in range(MAX_NAMES))


def test_those_who_are_online_are_here_from_the_start(tmp_path: Path) -> None:
    here = company()
    with mock.patch.object(module, "GatewayClient") as gateway:
        gateway.return_value.get.return_value = [
            {"id": "bob", "online": True}, {"id": "cyd", "online": False}, {"id": "ada", "online": True}, 7,
        ]  # fmt: skip
        asyncio.run(here.look())
        gateway.return_value.get.side_effect = CspError("gone")
        asyncio.run(company().look())

    assert gateway.call_args.args == ("http://room", "t")
    assert here.news() == ("bob",)
