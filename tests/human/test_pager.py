"""Long texts are shown where they can be read through."""

import os
import stat
from pathlib import Path

import pytest

from csp.human import pager

PANE = {"TMUX": "/tmp/tmux/default,1,0", "TMUX_PANE": "%3", "PATH": os.environ["PATH"]}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Answer what tmux is asked; the popup shows its file."""
    words_of: list[tuple[str, ...]] = []

    async def tmux(env: object, *words: str) -> tuple[int, str]:
        words_of.append(words)
        if words[0] == "list-clients":
            return 0, "1 9 control\n0 5 first\n0 7 last\n"
        assert Path(words[-1]).read_text() == "a\nb"
        return 0, ""

    monkeypatch.setattr(pager, "_tmux", tmux)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    return words_of


async def test_a_popup_is_over_the_terminal_of_who_typed_last(asked: list[tuple[str, ...]]) -> None:
    assert await pager.show_in_popup(PANE, "a\nb")
    _, popup = asked

    assert popup[:3] == ("display-popup", "-c", "last") and "-B" in popup
    assert "LESSSECURE=1" in popup and "--mouse" in popup
    assert not Path(popup[-1]).exists()


async def test_an_old_tmux_draws_the_popup_with_a_border(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pager._tmux

    async def old(env: dict[str, str], *words: str) -> tuple[int, str]:
        code, listed = await known(env, *words)
        return (1 if "-B" in words else code), listed

    monkeypatch.setattr(pager, "_tmux", old)
    assert await pager.show_in_popup(PANE, "a\nb")
    assert ["-B" in words for words in asked] == [False, True, False]


@pytest.mark.parametrize("env", [{}, {"TMUX_PANE": "%3"}, {"TMUX": "x"}])
async def test_outside_of_tmux_there_is_no_popup(env: dict[str, str], asked: list[tuple[str, ...]]) -> None:
    assert not await pager.show_in_popup(env, "a\nb")
    assert asked == []


async def test_without_a_pager_there_is_no_popup(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)

    assert not await pager.show_in_popup(PANE, "a\nb")
    assert pager.pager_command(Path("x"), is_mouse=False) is None


async def test_a_tmux_that_cannot_be_run_is_no_popup(tmp_path: Path) -> None:
    assert not await pager.show_in_popup(PANE | {"PATH": str(tmp_path)}, "a\nb")


def test_a_text_is_readable_for_its_user_alone_while_it_is_shown() -> None:
    with pager.text_file("ä\n") as file:
        assert (stat.S_IMODE(file.stat().st_mode), file.read_text("utf-8")) == (0o600, "ä\n")

    assert not file.exists()


def test_a_pager_gets_none_of_the_rooms_secrets(tmp_path: Path) -> None:
    out = tmp_path / "env"
    env = {"PATH": os.environ["PATH"], "CSP_AUTH_TOKEN": "a-secret-token", "LESS": "-E"}
    pager.read_through(["sh", "-c", f"env > {out}"], env)
    shown = out.read_text()

    assert "a-secret-token" not in shown and "LESSSECURE=1" in shown and "LESS=-E" not in shown
