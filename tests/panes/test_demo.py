"""The demo: no key, no network, three agents that answer."""

from tests.panes.place import Place


def test_the_demo_opens_answers_and_ends_without_a_trace(place: Place) -> None:
    place.up("--demo", "--orchestrator")
    assert [pane["agent"] for pane in place.panes()] == ["human", "orchestrator", "ada", "bob", "cy"]
    roles = {item["id"]: item["role"] for item in place.gateway.get("/agents")}
    assert roles == {"orchestrator": "orchestrator", "ada": "agent", "bob": "agent", "cy": "agent"}
    # A plain up joins it as it is, whatever else is installed.
    place.program("claude", "#!/bin/sh\nexec cat\n")
    place.up()
    assert set(place.online()) == set(roles)
    done = place.csp("send", "all", "tabs or spaces?", "--wait", "--timeout", "60", "--json")
    assert done.code == 0, f"{done.err}\n{place.shown()}"
    answered = {item["sender"] for item in place.gateway.get("/history", types="agent_response")["items"]}
    assert {"ada", "bob", "cy"} <= answered
    ended = place.csp("down")

    assert ended.code == 0, ended.err
    assert place.left_over() == []
    assert not place.state.exists()


def test_a_narrow_pane_shows_whole_rows_and_takes_messages(place: Place) -> None:
    place.set(CSP_DEMO_SPEED="0")
    place.up("--demo", "--agents", "ada")
    place.tmux("resize-window", "-t", "csp", "-x", "16", "-y", "40")
    place.wait(lambda: "❯ Say something\n" in place.screen("ada"), "a placeholder that fits")
    done = place.csp("send", "ada", "hello", "--wait", "--timeout", "60")

    assert done.code == 0, done.err
    place.wait(lambda: "❯ Say something\n" in place.screen("ada"), "the placeholder again")
    assert all(len(row) <= 16 for row in place.screen("ada").splitlines())
