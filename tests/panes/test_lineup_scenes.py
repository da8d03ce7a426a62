"""Line-ups of csp.toml: who starts, what they are told, what the others are shown."""

import json
import sys

from tests.panes.place import Place


def test_a_line_up_starts_its_agents_with_their_roles_and_prompts(place: Place) -> None:
    place.set(CSP_DEMO_SPEED="0")
    rows = []
    for name in ("ada", "bob", "cy"):
        command = [sys.executable, "-P", "-m", "csp.cli", "demo", name]
        rows.append(f'[[agent]]\nname = "{name}"\nprofile = "demo"\ncommand = {json.dumps(command)}')
    rows[1] += '\nrole = "reviewer"\nprompt = "Look for mistakes first."'
    rows.append('[lineups.pair]\nagents = ["ada", "bob"]')
    (place.dir / "csp.toml").write_text("\n".join(rows))
    unknown = place.csp("up", "--detach", "--lineup", "trio")
    assert unknown.code == 2
    assert "unknown line-up 'trio'" in unknown.err and "there are: pair" in unknown.err
    place.up("--lineup", "pair")

    assert set(place.online()) == {"ada", "bob"}
    place.wait(lambda: "Look for mistakes first." in place.screen("bob"), "the prompt of bob")
    assert "Look for mistakes" not in place.screen("ada")
    (line,) = [row for row in place.csp("agents").out.splitlines() if row.startswith("bob")]
    assert "reviewer, demo" in line
    place.csp("send", "ada", "who is here?", "--wait", "--timeout", "60")
    place.wait(lambda: "here: bob (reviewer)" in place.screen("ada"), "the role of bob in the pane of ada")
