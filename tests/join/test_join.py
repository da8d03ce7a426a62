"""Agents of one machine in a room on another one, over a real ssh."""

import json
import os
import signal
from typing import Final

import pytest

from csp.http_client import field, objects
from csp.panes.processes import Process, family, matching
from tests.join.asking import BACK_S, answered, say
from tests.join.ssh_host import SshHost
from tests.panes.place import Done, Place
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

JOINED: Final = "app-server"


def join(laptop: Place, host: SshHost, *words: str) -> Done:
    """Join the only room of the host with one agent."""
    options = ("--detach", "--demo", "--agents", "ada", "--machine", "laptop", *host.options)
    return laptop.csp("join", "server", *options, *words)


def link_processes(laptop: Place) -> list[Process]:
    """Return the supervisor of the link, the link and its ssh."""
    room = laptop.room
    assert room.supervisor is not None
    return sorted(family([room.supervisor]), key=lambda process: process.command)


def ssh_of(laptop: Place) -> int:
    """Return the pid of the link's ssh."""

    def found() -> int:
        return next((one.pid for one in link_processes(laptop) if one.command.startswith("ssh ")), 0)

    return wait_until_sync(found, BACK_S, "the ssh of the link")


def down(laptop: Place) -> Done:
    """Leave the room; nothing of it stays."""
    done = laptop.csp("down", "--room", JOINED)
    assert (done.code, list(laptop.state.glob("*"))) == (0, []), done.err
    return done


def test_an_agent_works_in_a_room_of_another_machine(room: LiveRoom, host: SshHost, laptop: Place) -> None:
    done = join(laptop, host, "--json")
    found = json.loads(done.out)
    announced, log = laptop.room, laptop.state / f"{JOINED}.gateway.log"
    say(room, "hello")
    answered(room, "hello")
    wait_until_sync(lambda: "hello" in laptop.shown(), what="the message in the human pane")
    status, (row,) = laptop.csp("status"), json.loads(laptop.csp("rooms", "--json").out)
    # The token is in the announcement, which only this user can read, and nowhere else.
    leaks = matching(room.token), room.token in log.read_text()
    again = join(laptop, host)
    ended = down(laptop)

    assert done.code == 0, done.err
    assert (found["room"], found["joined"]) == (JOINED, "server:app")
    assert [(agent["agent"], agent["problem"]) for agent in found["agents"]] == [("ada", "")]
    assert (announced.token, announced.joined, leaks) == (room.token, "server:app", (set(), False))
    assert f"room app at server:app through {announced.url}: ok" in status.out
    assert (row["state"], row["joined"], row["open"]) == ("running", "server:app", "csp join server:app")
    assert (again.code, "already running" in again.err) == (0, True)
    assert "link to server:app" in ended.err
    assert [agent["online"] for agent in objects(room.gateway.get("/agents"))] == [False]


@pytest.mark.full
def test_a_name_that_is_taken_gets_the_name_of_the_machine(
    room: LiveRoom, host: SshHost, laptop: Place
) -> None:
    room.gateway.post("/register", {"agentId": "ada", "kind": "api"})
    first = join(laptop, host)
    down(laptop)
    # Its own agent of the first time is not somebody else's.
    second = join(laptop, host)
    known = [field(agent, "id", str) for agent in objects(room.gateway.get("/agents"))]
    down(laptop)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert "ada is an agent of another machine, so the one here is ada-laptop" in first.err
    assert known == ["ada", "ada-laptop"]


def test_nothing_is_lost_or_doubled_when_a_part_of_the_link_dies(
    room: LiveRoom, host: SshHost, laptop: Place
) -> None:
    assert join(laptop, host).code == 0
    link = laptop.room.pid
    say(room, "first")
    os.kill(ssh_of(laptop), signal.SIGKILL)
    say(room, "ssh was killed")
    answered(room, "first", "ssh was killed")
    os.kill(link, signal.SIGKILL)
    say(room, "the link was killed")
    answered(room, "the link was killed")
    # A network that has become silent: ssh itself gives up after some seconds.
    host.signal_sessions(signal.SIGSTOP)
    say(room, "nothing passes")
    room.kill9()
    answered(room, "nothing passes")
    sent = laptop.csp("send", "all", "from here", "--room", JOINED)
    down(laptop)

    assert sent.code == 0, sent.err
    assert room.journal_texts().count("from here") == 1


@pytest.mark.full
def test_a_host_that_goes_away_is_reported_and_found_again(
    room: LiveRoom, host: SshHost, laptop: Place
) -> None:
    assert join(laptop, host).code == 0
    host.stop()
    wait_until_sync(lambda: laptop.csp("status").code == 1, BACK_S, "the loss")
    lost = laptop.csp("status")
    say(room, "said meanwhile")
    # The gateway is somewhere else afterwards.
    room.move()
    host.start()
    answered(room, "said meanwhile")
    found = laptop.csp("status")
    down(laptop)

    assert "the link to server:app has been down for" in lost.err
    assert (found.code, "room app at server:app" in found.out) == (0, True)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("server:nosuch", "room 'nosuch' is not running on server (running there: app)"),
        ("nobody@server", "Permission denied"),
        ("a host", "expected USER@HOST:ROOM or a URL, got 'a host'"),
    ],
)
def test_what_cannot_be_joined_is_explained(
    room: LiveRoom, host: SshHost, laptop: Place, target: str, problem: str
) -> None:
    done = laptop.csp("join", target, "--detach", *host.options)

    assert done.code in (1, 2)
    assert problem in done.err
    assert list(laptop.state.glob("*.json")) == []


def test_a_host_without_csp_is_named(room: LiveRoom, host: SshHost, laptop: Place) -> None:
    done = laptop.csp("join", "server", *host.options[:2], "--remote-csp", "nosuch-csp")

    assert done.code == 1
    assert "server has no command 'nosuch-csp' (install it there, or name it with" in done.err


@pytest.mark.full
def test_a_room_of_this_machine_keeps_its_name(room: LiveRoom, host: SshHost, laptop: Place) -> None:
    laptop.up("--demo", "--agents", "ada", "--room", "mine")
    done = join(laptop, host, "--as", "mine")
    laptop.csp("down", "--room", "mine")

    assert (done.code, "'mine' is a room of this machine (choose another name" in done.err) == (1, True)


def test_the_tokens_of_all_rooms_are_for_people(room: LiveRoom, laptop: Place) -> None:
    here = laptop.csp("token", "--all")
    laptop.set(XDG_RUNTIME_DIR=room.env["XDG_RUNTIME_DIR"])
    there = laptop.csp("token", "--all")
    laptop.set(CSP_AGENT="ada")
    refused = laptop.csp("token", "--all")

    assert (here.out, refused.code) == ("[]\n", 1)
    assert there.json == [{"room": "app", "url": room.url, "token": room.token}]
