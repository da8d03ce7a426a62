"""Start one more agent in a room that is open."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.cli.output import put_json, talk
from csp.cli.up import at_work, check_place, panes_of
from csp.cli.verb_call import VerbCall
from csp.config import AgentSpec, process_environment
from csp.errors import BadInput
from csp.model_providers import variables_of
from csp.panes.members import PaneMember, member_for, model_for, need
from csp.panes.wait_ready import StartOutcome

#: What only a model behind an API has, by its name among the arguments.
_OF_MODELS: Final = ("model", "base_url", "key_env", "role")


def add(call: VerbCall) -> int:
    """Start one more agent in the room; return when it has joined."""
    check_place(call)
    if not call.address.room:
        raise BadInput("csp add needs a room of this machine", "unset CSP_GATEWAY_URL")
    _check_kind(call.args)
    env = process_environment()
    wanted, outcome = (_add_model if call.args.provider else _add_cli)(call, env)
    if call.is_json:
        put_json(outcome._asdict())
    else:
        taken = "" if outcome.agent == wanted else f"; the name {wanted!r} was taken"
        here = f"{outcome.agent} is here ({outcome.state}){taken}"
        talk(f"csp: {outcome.problem}" if outcome.problem else here)
    return 1 if outcome.problem else 0


def _check_kind(args: argparse.Namespace) -> None:
    """Refuse options of a model for a CLI, and a command for a model."""
    given = [name for name in _OF_MODELS if getattr(args, name)]
    if args.provider and args.command:
        raise BadInput("a model behind an API has no command", "leave out what stands behind --")
    if args.provider and not args.model:
        raise BadInput("--provider needs a model beside it", "give it: --model NAME")
    if given and not args.provider:
        flag = given[0].replace("_", "-")
        raise BadInput(f"--{flag} needs a provider beside it", "give it: --provider NAME")


def _add_cli(call: VerbCall, env: Mapping[str, str]) -> tuple[str, StartOutcome]:
    from csp.panes.tmux_session import check_tmux
    from csp.panes.up import AddAgents

    check_tmux(env)
    args, settings = call.args, call.settings
    with at_work(settings.state_dir, call.address.room) as progress:
        joining = AddAgents(settings, call.address, env, progress.show)
        dir = call.directory(args.dir) if args.dir else joining.dir
        member = member_for(args.name, args.command, settings, dir, args.profile or "")
        return member.agent, joining.add(need(member, env))


def _add_model(call: VerbCall, env: Mapping[str, str]) -> tuple[str, StartOutcome]:
    """Start a model in a pane, or without one where the room has none."""
    from csp.agents.api.requirements import wanted
    from csp.panes.background_agents import BackgroundAgent
    from csp.panes.up import AddAgents, sidecar_argv

    args, settings, room = call.args, call.settings, call.address.room
    found = wanted(args.provider, args.base_url, args.key_env, env)
    variable = args.key_env or found.provider.key_env
    keys = variables_of(args.provider, args.key_env)
    with at_work(settings.state_dir, room) as progress:
        dir = call.directory(args.dir) if args.dir else None
        panes = panes_of(settings.state_dir, room)
        if panes is not None and panes.id:
            joining = AddAgents(settings, call.address, env, progress.show)
            member = _model(args, dir or joining.dir)
            # The room was opened in another environment, which may not have the key.
            return member.agent, joining.add(member, {variable: found.key} if found.key else {})
        member = _model(args, dir or call.cwd)
        starting = BackgroundAgent(settings.state_dir, room, call.gateway)
        argv = sidecar_argv(member, room, member.command)
        return member.agent, starting.start(member.name, argv, member.cwd, env, progress.show, keys)


def _model(args: argparse.Namespace, dir: Path) -> PaneMember:
    spec = AgentSpec(
        name=args.name,
        provider=args.provider,
        model=args.model,
        base_url=args.base_url or "",
        key_env=args.key_env or "",
        role=args.role or "agent",
    )
    return model_for(spec, dir)
