"""What the borders tell tmux, without a tmux."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from csp.panes.pane_borders import PaneBorders
from csp.terminal.pane_layout import LayoutName

LIST = "list-panes"


class Told(PaneBorders):
    """Borders whose tmux only listens."""

    def __init__(self, **env: str) -> None:
        super().__init__(env or {"CSP_PANES": "x", "TMUX_PANE": "%0"})
        self.lines: list[str] = []
        stream: Any = SimpleNamespace(
            write=lambda data: self.lines.append(data.decode().rstrip("\n")), is_closing=lambda: False
        )
        self._process = SimpleNamespace(stdin=stream, stdout=None)  # type: ignore[assignment]

    def heard(self, *lines: str) -> list[str]:
        """Take what tmux says; return what it is told then, a list of panes left out."""
        self.lines.clear()
        for line in lines:
            self._take(line)
        return [line for line in self.lines if not line.startswith(LIST)]


def pane(
    number: int,
    agent: str,
    window: int = 0,
    size: str = "200 49",
    place: str = "first",
    form: str = "top:400",
) -> str:
    return f"%{number} @{window} {size} {agent} {form} {place}"


def changed(window: int, size: str, flags: str = "*", text: str = "") -> str:
    text = text or f"abcd,{size},0,0,1"
    return f"%layout-change @{window} {text} {text} {flags}"


def room() -> Told:
    """Borders that know a human pane with ann and ben."""
    told = Told()
    told.heard(pane(0, "human"), pane(1, "ann"), pane(2, "ben"))
    return told


def test_a_state_is_told_once_its_pane_is_known() -> None:
    told = room()
    told.set_state("cid", "idle")
    assert [line[:10] for line in told.lines] == [LIST]
    assert told.heard(pane(3, "cid")) == ["set-option -p -t %3 @csp_state 'idle'"]
    assert told.heard(pane(3, "cid")) == []

    assert told.heard(pane(4, "cid")) == ["set-option -p -t %4 @csp_state 'idle'"]


def test_nothing_that_could_command_tmux_is_in_a_word() -> None:
    told = room()
    told.lines.clear()
    told.set_state("ann", "a'b;c#{x}\nd e:f.g-h_i")
    told.set_mode("De'bate #{x}\n1/2", None)

    assert told.lines[0] == "set-option -p -t %1 @csp_state 'abcxd e:f.g-h i'"
    assert told.lines[1] == "set-option -t %0 @csp_mode 'Debate {x}1/2'"


def test_a_clock_is_drawn_each_second_for_as_long_as_there_is_one() -> None:
    told = room()
    for text, until in (("Debate", 99.9), ("Debate", 99.9), ("Debate", None), ("", 5.0)):
        told.set_mode(text, until)

    assert [line.partition("-t %0 ")[2] for line in told.lines if "csp_mode" not in line][-6:] == [
        *("@csp_until '99'", "status-interval 1"),
        *("@csp_until ''", "status-interval "),
        *("@csp_until ''", "status-interval "),
    ]
    assert ["-u" in line for line in told.lines if "status-interval" in line] == [False, True, True]


def test_a_window_is_laid_out_anew_only_where_its_size_is_another() -> None:
    told = room()
    assert told.heard(changed(0, "200x49")) == []
    line, done = told.heard(changed(0, "190x49"))
    assert line.startswith("select-layout -t @0 '")
    assert done == "display-message -p csp-laid-out"
    assert told.heard(changed(0, "190x49")) == []
    assert told.heard(changed(7, "100x20")) == []


def test_a_zoomed_window_is_left_alone_and_laid_out_afterwards() -> None:
    told = room()
    assert told.heard(changed(0, "120x30", "*Z")) == []

    assert len(told.heard(changed(0, "120x30"))) == 2


def test_a_size_that_a_person_gave_the_human_pane_is_kept() -> None:
    told = room()
    bigger = "abcd,200x49,0,0[200x30,0,0,1,200x18,0,31{100x18,0,31,2,99x18,101,31,3}]"
    said = told.heard(changed(0, "200x49", text=bigger))
    assert said[:2] == ["set-option -t %0 @csp_layout top", "set-option -t %0 @csp_share 613"]
    assert told.form.share == 613

    (line, _) = told.heard(changed(0, "200x98"))
    assert "[200x60,0,0,0," in line


def test_what_follows_from_our_own_layout_is_nobodys_choice() -> None:
    told = room()
    told.heard(changed(0, "200x98"))
    between = "abcd,200x98,0,0[200x20,0,0,1,200x77,0,21{100x77,0,21,2,99x77,101,21,3}]"
    assert told.heard(changed(0, "200x98", text=between)) == []
    told.heard("csp-laid-out")

    assert told.heard(changed(0, "200x98", text=between)) != []


def test_another_layout_is_chosen_for_all_sizes() -> None:
    told = room()
    told.lines.clear()
    told.choose(LayoutName.LEFT)

    assert told.lines[:2] == ["set-option -t %0 @csp_layout left", "set-option -t %0 @csp_share 450"]
    assert "resize-pane -t %0 -x 45%" in told.lines[2]
    assert told.lines[3].startswith("select-layout -t @0 '") and "{90x49,0,0,0," in told.lines[3]


def test_who_has_no_place_goes_out_and_comes_back() -> None:
    told = room()
    out = told.heard(changed(0, "80x10"))
    assert [line for line in out if "break-pane" in line] == [
        "break-pane -d -n ann -s %1",
        "break-pane -d -n ben -s %2",
    ]
    assert sum("remain-on-exit 'on'" in line for line in out) == 2
    assert sum("@csp_further '1'" in line for line in out) == 2
    assert out[-2:] == ["display-message -p csp-panes-moved", "display-message -p csp-laid-out"]
    assert told.lines[-2].startswith(LIST)
    # What is said of the panes before they have moved is old.
    assert told.heard(pane(1, "ann"), "%end 1 1 0") == []
    assert "ann" not in told._panes
    told.heard("csp-panes-moved", pane(1, "ann", 1, place="further"), pane(2, "ben", 2, place="further"))
    back = told.heard(changed(0, "200x49"))

    assert [line for line in back if "join-pane" in line] == [
        "join-pane -d -s %1 -t %0",
        "join-pane -d -s %2 -t %1",
    ]
    assert back.count("run-shell -d 0.02") == 2
    assert not told._outside


def test_an_agent_that_somebody_brought_back_is_outside_no_more() -> None:
    told = Told()
    told.heard(pane(0, "human"), pane(1, "ann", 1, place="further"))
    assert [*told._outside] == ["ann"]
    told.heard(pane(1, "ann"))

    assert [*told._outside] == []


def test_what_is_too_full_is_relieved_when_the_list_has_ended() -> None:
    told = Told()
    panes = [pane(number, f"a{number}", size="80 10") for number in range(1, 4)]
    assert told.heard(pane(0, "human", size="80 10"), *panes) == []

    assert sum("break-pane" in line for line in told.heard("%end 1 1 0")) == 3


def test_a_new_window_is_looked_at() -> None:
    for line in ("%window-add @5", "%unlinked-window-add @5"):
        told = Told()
        told._take(line)
        assert [said[:10] for said in told.lines] == [LIST]
    assert Told().heard("%window-close @5", pane(9, "-"), "nonsense") == []


async def test_outside_of_our_panes_tmux_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for env in ({}, {"TMUX_PANE": "%1"}, {"CSP_PANES": "x"}):
        borders = PaneBorders(env)
        await borders.start()
        borders.set_state("ann", "idle")
        await borders.close()

        assert borders._process is None


async def test_a_lost_connection_shows_all_of_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.panes.pane_borders._AGAIN_S", 0.0)
    told = room()
    told.set_state("ann", "busy")
    told.set_mode("Debate", None)
    told._moves = 1
    process: Any = told._process

    async def wait() -> int:
        return 0

    async def connect() -> Any:
        return process

    process.wait = wait
    monkeypatch.setattr(told, "_connect", connect)
    told.lines.clear()
    await told._come_back()
    assert "set-option -t %0 @csp_mode 'Debate'" in told.lines

    assert told.heard(pane(1, "ann")) == ["set-option -p -t %1 @csp_state 'busy'"]


async def test_the_client_changes_no_size_and_hears_no_key_of_the_pane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    async def execute(*words: str, **options: Any) -> Any:
        asked.append((words, options))
        raise FileNotFoundError

    monkeypatch.setattr("csp.panes.pane_borders.asyncio.create_subprocess_exec", execute)
    borders = PaneBorders({"CSP_PANES": "x", "TMUX_PANE": "%7"})
    assert await borders._connect() is None
    ((words, options),) = asked

    assert words == ("tmux", "-C", "attach-session", "-t", "%7", "-f", "no-output,ignore-size")
    assert options["start_new_session"] is True


async def test_a_client_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.panes.pane_borders._CLOSE_S", 0.01)
    told, killed = room(), asyncio.Event()
    process: Any = told._process
    process.stdin.close = lambda: None
    process.wait, process.kill = killed.wait, killed.set
    await told.close()

    assert killed.is_set()
    assert told._process is None
