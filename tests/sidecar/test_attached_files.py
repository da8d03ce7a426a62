"""No form of a path behind an `@` makes a real CLI attach a file to a message of the room."""

import re
import socket
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import CLIS, RealCli
from tests.sidecar.newest import PATIENCE_S, Scene, scene
from tests.sidecar.stage import Seat

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("newest clis")]

PROFILES: Final = Path(__file__).parents[2] / "csp" / "clis"

#: How a path can stand in a text, with the folder that its file is in; each form has a file of its own.
FORMS: Final = {
    "start of a line": ("project", "@{name}"),
    "middle of a line": ("project", "see @{name} now"),
    "this folder": ("project", "and @./{name} too"),
    "folder above": ("above", "and @../{name} too"),
    "home": ("home", "and @~/{name} too"),
    "quoted": ("project", 'and @"{name}" too'),
    "quoted with a blank": ("project", 'and @"a {name}" too'),
    "single quotes": ("project", "and @'{name}' too"),
    "address of a file": ("above", "and @file://{path} too"),
    "in brackets": ("above", "and (@{path}) too"),
    "whole path": ("above", "and @{path} too"),
    "whole path at the start": ("above", "@{path}"),
    "inside a word": ("project", "and bob@{name} too"),
    "after CJK": ("project", "漢字@{name}、と"),
    "after a full stop of CJK": ("project", "。@{name}"),
    "escaped blanks": ("project", r"and @a\ {name} too"),
    "there and back": ("project", "and @sub/../{name} too"),
    "escaped dots": ("project", r"and @sub/\.\./{name} too"),
    "back twice": ("above", "and @sub/../../{name} too"),
    "twice": ("project", "and @@{name} too"),
    "after a backslash": ("project", r"and \@{name} too"),
    "after an address": ("project", "https://example.org/@{name} too"),
    "wide": ("project", "and ＠{name} too"),
    "lines of it": ("project", "and @{name}#L1-2 too"),
    "after a tab": ("project", "and\t@{name} too"),
    "after a blank that does not break": ("project", "and\u00a0@{name} too"),
    "with the sign": ("project", "and @\u202f{name} too"),
    "with another sign": ("project", "and @\u2060{name} too"),
    "pattern": ("project", "and @**/{name}* too"),
}


class Files:
    """One file for each form; its content is a word that stands nowhere else."""

    def __init__(self, cli: RealCli) -> None:
        folders = {"project": cli.cwd, "above": cli.cwd.parent, "home": cli.home}
        (cli.cwd / "sub").mkdir()
        self.lines: list[str] = []
        #: Those that Gemini does not ask about: it does so for files that are not in its folder.
        self.own_lines: list[str] = []
        self.secrets: dict[str, str] = {}
        for number, (form, (folder, text)) in enumerate(FORMS.items()):
            name = f"plain{number:02d}.txt"
            path = folders[folder] / (f"a {name}" if "a {name}" in text or r"a\ {name}" in text else name)
            self.secrets[form] = f"heron{number:02d}egret{number:02d}"
            path.write_text(f"{self.secrets[form]}\n", "utf-8")
            line = text.format(name=name, path=path)
            self.lines.append(line)
            self.own_lines += [line] if folder == "project" else []
        # Gemini reads all files of a folder. Claude lists their names, which Gemini always does in its own.
        for form, place, name, secret in (
            ("whole folder", cli.cwd / "folder", "plain98.txt", "heron98egret98"),
            ("whole folder above", cli.cwd.parent / "folder", "heron99.txt", "heron99.txt"),
        ):
            place.mkdir()
            (place / name).write_text("heron98egret98\n", "utf-8")
            self.secrets[form] = secret
            self.lines.append(f"and @{place} too")

    def leaked(self, play: Scene, name: str) -> list[str]:
        bodies = [str(exchange.body) for exchange in play.server.exchanges(name)]
        return [form for form, secret in self.secrets.items() if any(secret in body for body in bodies)]


def unprotected(name: str, folder: Path) -> Path:
    """Return a profile without its sign: a version of the CLI that no longer respects it."""
    text = (PROFILES / name / "profile.toml").read_text("utf-8")
    text, changes = re.subn(r'neutralise_at = ".*"', 'neutralise_at = ""', text)
    assert changes == 1
    profile = folder / f"{name}.toml"
    profile.write_text(text, "utf-8")
    return profile


def sit(play: Scene, name: str, *options: str) -> tuple[Seat, Files]:
    cli = play.cli(name)
    files = Files(cli)
    seat = play.stage.seat(name, cli.argv, *options, env=cli.env, cwd=cli.cwd)
    seat.wait_ready("idle", PATIENCE_S)
    return seat, files


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "gemini" else pytest.mark.full) for name in CLIS]
)
def test_no_form_of_a_path_attaches_a_file(name: str, tmp_path: Path) -> None:
    with scene(tmp_path) as play:
        _, files = sit(play, name)
        for text in ("\n".join(files.lines), "@/etc/hostname", f"why\n{files.lines[-2]}"):
            assert play.answer(play.stage.send(name, text), name) == "ok"

        assert files.leaked(play, name) == []
        assert paused(play) == []
        assert not any(socket.gethostname() in result for result in play.server.results(name))


@pytest.mark.full
@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_a_file_pauses_the_agent_unless_a_person_has_asked_for_it(name: str, tmp_path: Path) -> None:
    with scene(tmp_path) as play:
        seat, files = sit(play, name, "--profile-file", str(unprotected(name, tmp_path)))
        assert play.answer(play.stage.send(name, "hello there"), name) == "ok"
        seat.type("my own words @plain01.txt ")
        play.wait(lambda: "my own words" in seat.screen(), "the person's words")
        play.enter(seat, lambda: any("my own words" in prompt for prompt in play.server.prompts(name)))
        seat.wait_ready("idle", PATIENCE_S)
        assert files.leaked(play, name) == ["middle of a line"]
        assert paused(play) == []
        play.stage.send(name, "\n".join(files.own_lines))
        seat.wait_ready("paused", PATIENCE_S)
        later = play.stage.send(name, "and go on")
        play.stage.wait_for(later, name, "held", timeout_s=PATIENCE_S)

        assert play.stage.state(later, name) == ("held", "paused")
        assert [one for one in paused(play) if f"csp resume {name}" in one]
        assert "inside a word" in files.leaked(play, name) or name == "claude"


def paused(play: Scene) -> list[str]:
    return [one for one in play.notices() if "was given a file" in one]
