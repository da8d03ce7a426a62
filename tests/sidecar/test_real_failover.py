"""A real Claude Code on another machine than its room's gateways, one of which dies in the middle of a turn.

The sidecar reaches two gateways over TLS with a private authority; the machines have no other connection.
"""

import shlex
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import pytest

from csp.fast_start.fast_http import trust
from tests.clis.bringup import SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.cluster.certificates import Certificate, make_certificate
from tests.cluster.nats_servers import SERVER, NatsServer
from tests.join.namespaces import Namespace, ServerRoom, TwoMachines, inside
from tests.models.rules import Pause, Rule, Text
from tests.models.server import ModelServer
from tests.sidecar.stage import Stage
from tests.sidecar.texts import bodies
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

PATIENCE_S: Final = 240.0
ROOM: Final = "shared"
TOKEN: Final = "the-token-of-the-room"
TASK: Final = "a long task"
ANSWER: Final = "The answer after the gateway died."
#: Long enough for the other gateway to claim the room while the CLI works.
PAUSE_S: Final = 10.0
RULES: Final = (Rule(match=TASK, reply=[Pause(seconds=PAUSE_S), Text(text=ANSWER)]),)


class InsideServer(NatsServer):
    """A NATS server on the machine of the gateways."""

    def __init__(self, folder: Path, machine: Namespace) -> None:
        self._machine = machine
        folder.mkdir()
        program = folder / "nats-server"
        program.write_text(f'#!/bin/sh\nexec {shlex.join([*machine.enter, str(SERVER)])} "$@"\n')
        program.chmod(0o755)
        super().__init__(folder, program=str(program))

    def _is_up(self) -> bool:
        return inside(self._machine, super()._is_up)


class TlsRoom(ServerRoom):
    """A gateway on the machine of the gateways, with a certificate of a private authority."""

    def __init__(self, folder: Path, machine: Namespace, server: NatsServer, made: Certificate) -> None:
        secret = folder.parent / "secret"
        secret.write_text("a secret that all gateways share\n")
        words = ["--journal", server.url, "--secret-file", str(secret), "--host", machine.address]
        words += ["--tls-cert", str(made.cert), "--tls-key", str(made.key)]
        super().__init__(folder, *words, name=ROOM, env={"CSP_AUTH_TOKEN": TOKEN})
        self.machine = machine
        self.url = f"https://{machine.address}:{self.port}"
        trust(self.url, str(made.ca))


class LaptopStage(Stage):
    """Panes on another machine than the gateways; one gateway is asked how things are."""

    def __init__(self, folder: Path, machine: Namespace, room: ServerRoom) -> None:
        super().__init__(folder)
        self._machine = machine
        self.room = room

    def __enter__(self) -> Self:
        self.tmux("start-server", ";", "set-option", "-g", "exit-empty", "off")
        return self

    def tmux(self, *words: str, check: bool = True) -> str:
        command = [*self._machine.enter, "tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout


def test_a_prompt_is_typed_once_and_its_reply_posted_once_though_the_gateway_dies(tmp_path: Path) -> None:
    with ExitStack() as stack:
        machines = stack.enter_context(TwoMachines())
        made = make_certificate(tmp_path / "tls", machines.server.address)
        server = stack.enter_context(InsideServer(tmp_path / "nats", machines.server))
        first, second = (
            stack.enter_context(TlsRoom(tmp_path / name, machines.server, server, made)) for name in "ab"
        )
        loopback = stack.enter_context(Loopback())
        model = stack.enter_context(ModelServer(list(RULES), listener=loopback.listener))
        stage = stack.enter_context(LaptopStage(tmp_path / "stage", machines.laptop, second))
        cli = bring_up("claude", model, loopback, tmp_path, SetUp())
        given = {"CSP_GATEWAY_URL": f"{first.url},{second.url}", "CSP_CA_FILE": str(made.ca)}
        seat = stage.seat("claude", cli.argv, env=cli.env | given | {"CSP_AUTH_TOKEN": TOKEN}, cwd=cli.cwd)
        seat.wait_ready("idle", PATIENCE_S)
        asked = stage.send("claude", TASK)
        wait_until_sync(
            lambda: TASK in "".join(model.prompts("claude")), PATIENCE_S, "the prompt at the model"
        )
        first.kill9()
        reply = stage.reply_to(asked, "claude", PATIENCE_S)
        stage.wait_for(asked, "claude", "confirmed", timeout_s=PATIENCE_S)
        again = stage.send("claude", "and now")
        after = stage.reply_to(again, "claude", PATIENCE_S)
        heard = [body for body in bodies(model.prompts("claude")) if TASK in body]
        texts = second.journal_texts()

    assert (reply["text"], after["text"]) == (ANSWER, "ok")
    assert heard == [TASK]
    assert texts.count(ANSWER) == 1
