"""A provider of models is one row: what it needs is read from it everywhere."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final
from unittest.mock import AsyncMock

import pytest
from aiohttp.test_utils import make_mocked_request

from csp import model_providers
from csp.agents.api import providers
from csp.agents.api.call_errors import failure_of
from csp.agents.api.model_call import ModelCall
from csp.agents.api.providers import Model, Piece, Target
from csp.agents.api.request import ModelMessage, ModelRequest
from csp.agents.api.requirements import wanted
from csp.cli import logging_setup
from csp.errors import BadInput
from csp.gateway import page_routes
from csp.gateway.agent_launcher import AgentLauncher
from csp.model_providers import PROVIDERS, Provider, provider_named, sdk_packages, variables_of, well_known
from csp.protocol.requests import StartBody, Usage

ROOT: Final = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_has_a_function_that_opens_its_models(name: str) -> None:
    assert PROVIDERS[name].opens in providers.OPENERS


def test_who_calls_a_provider_gets_its_key_and_what_its_sdk_reads() -> None:
    assert variables_of("anthropic", None) == ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
    assert variables_of("anthropic", "MINE") == ("MINE", "ANTHROPIC_BASE_URL")
    assert "" not in variables_of("openai-compatible", None)


def test_what_an_sdk_says_is_quiet_and_taken_for_the_network() -> None:
    assert sdk_packages() <= set(logging_setup._TALKATIVE)
    lost = type("Lost", (Exception,), {"__module__": f"{min(sdk_packages())}.errors"})
    assert failure_of(lost("gone"), "", 0.0).is_passing


# --- one more ------------------------------------------------------------------------------------


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add a provider by one row."""
    row = Provider(extra="openai", opens="chat", key_env="ACME_KEY", variables=("ACME_URL",))
    monkeypatch.setitem(model_providers.PROVIDERS, "acme", row)
    return "acme"


def help_of(verb: str, name: str) -> str:
    """Return the help of a verb in a process whose table has one provider more."""
    code = (
        "from csp import cli, model_providers as table\n"
        f"row = table.PROVIDERS['openai']\ntable.PROVIDERS[{name!r}] = row\n"
        f"raise SystemExit(cli.main([{verb!r}, '--help']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return " ".join(run.stdout.split())


def test_a_new_provider_is_in_the_help(acme: str) -> None:
    assert ", acme, ..." in help_of("add", acme)
    assert " or acme --model" in help_of("agent", acme)


async def test_a_new_provider_is_in_the_form_of_the_page(acme: str) -> None:
    answer = await page_routes.serve_index(make_mocked_request("GET", "/"), {})
    body = getattr(answer, "body", b"")

    assert b"".join(f"<option>{name}</option>".encode() for name in (*well_known(),)) in body
    assert b"<option>acme</option>" in body and b"<!-- providers -->" not in body


async def test_a_new_provider_passes_the_check_of_the_gateway(acme: str) -> None:
    assert provider_named(acme).key_env == "ACME_KEY"
    assert wanted(acme, None, None, {"ACME_KEY": "k-1"}).key == "k-1"
    with pytest.raises(BadInput, match="unknown provider 'acne'") as refused:
        await AgentLauncher("den").start(StartBody(name="a", provider="acne", model="m"))
    assert "acme" in refused.value.hint


async def test_a_provider_with_an_api_of_its_own_takes_one_function_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def umbrella(target: Target) -> Model:
        """Answer in place of a model, with what it was asked."""

        async def stream(ask: ModelRequest) -> AsyncGenerator[Piece, None]:
            yield f"{target.model} heard {ask.said[0].text}"
            yield Usage(input=2, output=3, model=target.model)

        return Model(stream, close=AsyncMock())

    monkeypatch.setitem(providers.OPENERS, "umbrella", umbrella)
    monkeypatch.setitem(model_providers.PROVIDERS, "umbrella", Provider(extra="openai", opens="umbrella"))
    model = providers.open_model(provider_named("umbrella"), Target(provider="umbrella", model="u-1"))
    call = ModelCall(model, "u-1", secret="")
    ask = ModelRequest(system="", said=(ModelMessage(text="hello"),))

    assert await call.run(ask, hear=lambda words: None, note=lambda line: None) == "u-1 heard hello"
    assert call.usage == Usage(input=2, output=3, model="u-1")


def test_the_start_script_knows_what_to_install(tmp_path: Path) -> None:
    models = "".join(f'[[agent]]\nprovider = "{name}"\n' for name in (*PROVIDERS, "nobody"))
    (tmp_path / "csp.toml").write_text(models)
    script = f'ROOT={ROOT}; . "$ROOT/bin/setup.sh"; wanted_extras {tmp_path}/csp.toml'
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.split() == sorted(sdk_packages())
