"""csp web --lan: a running room is opened to the network, and its agents stay."""

import os
import signal
import subprocess

from tests.panes.place import Place


def curl(place: Place, url: str, certificate: str) -> str:
    command = ["curl", "-sS", "--max-time", "60", "--cacert", certificate, f"{url}/health"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_running_room_is_opened_to_the_network_and_stays_so(place: Place) -> None:
    place.set(CSP_DEMO_SPEED="0")
    place.up("--demo", "--agents", "ada")
    before, pane = place.room, place.pane("ada")["id"]
    done = place.csp("web", "--lan", "127.0.0.2", "--json")
    assert done.code == 0, done.err
    found, room = done.json, place.room

    assert (room.url, room.pid != before.pid) == (before.url, True)
    assert found["url"].startswith(f"{room.lan}/#link=")
    assert '"status"' in curl(place, room.lan, found["certificate"])
    place.wait(lambda: "ada" in place.online(), "ada in the room again")
    assert place.pane("ada")["id"] == pane
    assert [row["lan"] for row in place.csp("rooms", "--json").json] == [room.lan]
    assert "running, on the network" in place.csp("rooms").out
    # A second link needs no restart.
    again = place.csp("web", "--lan", "127.0.0.2", "--json").json
    assert place.room.pid == room.pid
    assert (again["fingerprint"], again["url"] != found["url"]) == (found["fingerprint"], True)
    # It survives a crash of the gateway.
    os.kill(room.pid, signal.SIGKILL)
    place.wait(lambda: place.room.pid != room.pid, "the next gateway")
    place.wait(lambda: '"status"' in curl(place, room.lan, found["certificate"]), "the next listener")

    assert place.csp("down").code == 0
    assert place.left_over() == []
    place.up("--demo", "--agents", "ada", "--lan", "127.0.0.2")
    assert place.room.lan.startswith("https://127.0.0.2:")
    assert '"status"' in curl(place, place.room.lan, found["certificate"])
