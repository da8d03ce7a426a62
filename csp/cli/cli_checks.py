"""Check the agent CLIs on this machine, without a turn that would cost money."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from csp.clis import version_check
from csp.clis.adapter import CliRun, Wired
from csp.clis.profile import Profile, checked, load_profile, profile_for
from csp.clis.registry import find_adapter
from csp.clis.version_check import ask_version, untested
from csp.clis.wiring import unwire, wire
from csp.clis.wiring_parts import hook_command
from csp.config import CLIS, Settings, command_setting, process_environment
from csp.fast_start.child_environment import TOOL, USER, child_environment
from csp.panes.find_program import find

_FLAG: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


class CheckResult(NamedTuple):
    """The outcome of one check, with advice if something can be done about it."""

    check: str
    ok: bool
    detail: str
    advice: str = ""


class Cli(NamedTuple):
    """One CLI from the settings; `source` is the variable or file that sets its command."""

    name: str
    command: tuple[str, ...]
    install: str = ""
    source: str = ""


def check_clis(settings: Settings, env: Mapping[str, str], cwd: Path) -> Iterator[CheckResult]:
    """Check whether each agent CLI is installed, known and can be wired."""
    for cli in clis_of(settings):
        found = find(cli.command, cwd, env)
        if found is None:
            yield missing(settings, cli)
            continue
        path = shutil.which(found.command[0], path=env.get("PATH")) or found.command[0]
        yield from check_cli(cli._replace(command=found.command), path, found.profile, env, cwd)


def check_cli(
    cli: Cli, path: str, profile_name: str, env: Mapping[str, str], cwd: Path
) -> Iterator[CheckResult]:
    """Check an installed CLI."""
    profile = checked(load_profile(profile_name or profile_for(*cli.command).name))
    version = ask_version(profile, [path], env)
    yield CheckResult(f"cli {cli.name}", True, f"{path}" + (f", {version}" if version else ""))
    if not profile.versions:
        yield CheckResult(f"profile {cli.name}", True, f"{profile.name}: its only source is the screen")
        return
    problem = untested(profile, version)
    said = problem or (f"{version}, tested" if version else f"{path} does not report its version")
    advice = "" if version else f"run {path} once by hand"
    if problem:
        advice = "it should work; if a state is not recognised, report it"
    # An unknown version is not an error: the CLI works, with a warning.
    yield CheckResult(f"profile {cli.name}", bool(version), said, advice)
    with tempfile.TemporaryDirectory(prefix="csp-doctor-") as folder:
        yield from check_wiring(cli, profile, path, env, cwd, Path(folder))


def missing(settings: Settings, cli: Cli) -> CheckResult:
    """Report a CLI that is not installed; it counts as a failure only if the settings require it."""
    name, command = f"cli {cli.name}", cli.command[0]
    if cli.source:
        advice = f"check its spelling, or unset {cli.source}"
        return CheckResult(name, False, f"{cli.source}: {command} was not found", advice)
    advice = "check its command in csp.toml"
    if cli.install:
        where = f"set CSP_{cli.name.upper()}_CMD=PATH"
        advice = f"{cli.install}; {where}; or continue without it"
    if settings.strict_cli_check or settings.agents:
        return CheckResult(name, False, f"{command} is not installed", advice)
    return CheckResult(name, True, "not installed (optional)", advice)


def clis_of(settings: Settings) -> list[Cli]:
    """Return the CLIs of the agents in csp.toml, or else all known ones."""
    known = {name: settings.command_of(name) for name in CLIS}
    if settings.agents:
        named = [
            (spec.name, spec.command or known.get(spec.profile or spec.name, ())) for spec in settings.agents
        ]
        return [Cli(name, command) for name, command in named if command]
    set_by = {
        name: settings.sources[command_setting(name)] if settings.is_set(command_setting(name)) else ""
        for name in CLIS
    }
    return [Cli(name, known[name], adapter.install, set_by[name]) for name, adapter in CLIS.items()]


def check_wiring(
    cli: Cli, profile: Profile, path: str, env: Mapping[str, str], cwd: Path, folder: Path
) -> Iterator[CheckResult]:
    """Check that a run can be wired, in a folder of its own and without starting the CLI."""
    argv, name = [path, *cli.command[1:]], f"wiring {cli.name}"
    try:
        wired = wire(profile.capture, CliRun(folder, argv, env, str(uuid4()), "rules", cwd=str(cwd)))
    except OSError as exc:
        yield CheckResult(name, False, f"cannot be written: {exc}", "check the permissions in your home")
        return
    unwire(folder)
    adapter = find_adapter(profile.capture)
    if not wired.spool_dir:
        said = "this CLI has no hooks, rules or tools to add"
        if not adapter.is_session(argv):
            said = f"{' '.join(cli.command)!r} is not an interactive session, so nothing is added"
        yield CheckResult(name, True, said)
        return
    yield check_flags(cli, path, argv, wired, env)
    if adapter.has_hooks:
        yield check_hook(cli, Path(wired.spool_dir))
    yield check_transcripts(cli, wired)


def check_flags(cli: Cli, path: str, argv: list[str], wired: Wired, env: Mapping[str, str]) -> CheckResult:
    """Check that the CLI's own help lists the arguments we add."""
    ours = sorted({word for word in wired.argv if _FLAG.fullmatch(word)} - set(argv))
    name, by_hand = f"wiring {cli.name}", f"run {path} --help by hand"
    try:
        done = subprocess.run(
            [path, "--help"],
            env=child_environment(USER, env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=version_check.TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        said = f"--help did not end within {version_check.TIMEOUT_S:g} s"
        return CheckResult(name, False, said, by_hand)
    except OSError as exc:
        return CheckResult(name, False, f"--help failed: {exc}", by_hand)
    known = set(_FLAG.findall(done.stdout + done.stderr))
    strange = [flag for flag in ours if flag not in known]
    if strange:
        said = f"its --help does not list {', '.join(strange)}, which CSP adds"
        advice = (
            f"install a version that the profile was tested with, or use --profile generic for {cli.name}"
        )
        return CheckResult(name, False, said, advice)
    return CheckResult(name, True, f"its --help lists the added arguments: {', '.join(ours) or 'nothing'}")


def check_hook(cli: Cli, spool: Path) -> CheckResult:
    """Check our hook command by running it as the CLI would, without starting the CLI."""
    said = '{"hook_event_name": "SessionStart"}'
    done = subprocess.run(
        ["sh", "-c", hook_command(spool)],
        env=child_environment(TOOL, process_environment()),
        input=said,
        text=True,
        capture_output=True,
        check=False,
    )
    arrived = [path.read_text("utf-8") for path in spool.glob("*.json")]
    if done.returncode == 0 and arrived == [said]:
        what = f"the hook command works; a first message will show whether {cli.name} runs it"
        return CheckResult(f"hooks {cli.name}", True, what)
    advice = "check that sh, cat and mv work"
    return CheckResult(f"hooks {cli.name}", False, "the hook's output did not arrive", advice)


def check_transcripts(cli: Cli, wired: Wired) -> CheckResult:
    """Check that the CLI's transcript folder can be read."""
    hint = Path(wired.transcript_hint)
    folder = hint.parent.parent if hint.suffix == ".jsonl" else hint
    name = f"transcripts {cli.name}"
    if not folder.exists():
        return CheckResult(name, True, f"{folder} will be created by the first conversation")
    if os.access(folder, os.R_OK | os.X_OK):
        return CheckResult(name, True, f"{folder} can be read")
    advice = "without it, replies are read from the screen; make it readable: chmod u+rx"
    return CheckResult(name, False, f"{folder} cannot be read", advice)
