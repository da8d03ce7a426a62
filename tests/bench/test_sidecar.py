"""The bench of the sidecar measures a real one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cli import main
from csp.cli.parser import parse
from csp.errors import Broken, NotFound
from tests.bench import turns
from tests.bench.__main__ import read_saved
from tests.bench.cases import CASES
from tests.bench.machine import scene as scenes
from tests.bench.machine import sidecar as bench
from tests.bench.machine.figures import table
from tests.bench.machine.relay import Tmux, bare_memory_mb, bare_start_s, flood
from tests.bench.machine.scene import Scene, delivered, left, state_of
from tests.bench.machine.sidecar import Effort, Seated, idle_memory_mb, measure, post, start_once
from tests.bench.results import Limit, Result, Rounds, said
from tests.bench.setting import Setting
from tests.clis.bringup import CLIS, RealCli

TINY = Effort(rounds=1, megabytes=1, keys=5, sample_bytes=100_000, starts=1)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Scene(tmp_path_factory.mktemp("scene")) as it:
        yield it


def test_a_sidecar_is_connected_after_its_childs_first_byte(scene: Scene) -> None:
    found = start_once(scene)

    assert 0 < bare_start_s() < found.first_byte_s < found.connected_s


def test_the_memory_is_that_of_a_relay_with_its_brain(scene: Scene) -> None:
    relay, brain = idle_memory_mb(scene)

    assert bare_memory_mb() * 0.8 < relay < brain


def test_a_child_that_shows_something_else_ends_the_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_QUICK_CLI", "echo sorry")

    with pytest.raises(Broken, match="sorry"):
        start_once(scene)


def test_a_delivery_takes_longer_than_its_floor(scene: Scene) -> None:
    with post(scene) as found:
        taken = [found.deliver(text) for text in ("first\nof two lines", "second")]

    for one in taken:
        assert one.floor_s > 0.04
        assert one.confirmed_s > one.floor_s
        assert one.reply_s > 0
        assert one.signal_s > 0


def test_a_pane_takes_a_flood_through_a_whole_sidecar(scene: Scene) -> None:
    way = Seated(scene)
    with Tmux(scene.folder) as tmux:
        assert flood(tmux, way, scene.folder, 1) > 0.01

    assert scene.ear.wait(left(way._name)) > scene.ear.wait(state_of(way._name)) > 0


def test_a_cli_that_ends_ends_the_run(scene: Scene) -> None:
    with (
        scene.seat(scene.new_name(), [scene.script("claude", "echo sorry")]) as seat,
        pytest.raises(Broken, match="sorry"),
    ):
        scene.ear.wait(state_of("nobody"), [seat.fd])


def test_an_event_that_does_not_come_ends_the_run(scene: Scene) -> None:
    with pytest.raises(Broken, match=r"did not come in 0\.01 s"):
        scene.ear.wait(delivered("nothing", "confirmed"), timeout_s=0.01)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_is_cut_where_it_ends(size: int) -> None:
    head = b"\x81" + (
        bytes((size,))
        if size < 126
        else b"\x7e" + size.to_bytes(2, "big")
        if size < 65_536
        else b"\x7f" + size.to_bytes(8, "big")
    )
    whole = head + b"x" * size

    assert scenes._cut_frame(whole + b"more") == (0x81, b"x" * size, b"more")
    assert all(scenes._cut_frame(whole[:cut]) is None for cut in (0, 1, len(head) - 1, len(whole) - 1))


def test_everything_is_measured() -> None:
    steps: list[str] = []
    figures, missing = measure(TINY, steps.append)
    values = {figure.name: figure.as_json() for figure in figures.all()}

    assert missing == []
    assert json.loads(json.dumps(values)) == values
    assert len(table(figures.all())) == len(values) + 1
    assert steps[-1] == "delivery, round 1 of 1"
    for name in (
        "flood, relay / direct",
        "flood, sidecar / direct",
        "key echo p50, sidecar / direct",
        "screen feed, redraw, ours / pyte",
        "start, child's first byte / bare Python",
        "start, sidecar connected / bare Python",
        "resident memory, relay + brain / bare Python",
        "send to confirmed, over the stand-in's own floor",
    ):
        assert values[name]["rounds"] == 1


def test_what_needs_tmux_is_left_out_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NotFound, match="tmux is not installed"):
        Tmux(tmp_path)


def test_the_command_line_knows_the_bench() -> None:
    verb, args = parse(["bench", "sidecar", "--quick"])

    assert (verb.name, args.subject, args.quick, args.json) == ("bench", "sidecar", True, False)


def test_seconds_are_for_the_gateway_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sidecar", "--seconds", "1"]) == 2
    assert "--seconds" in capsys.readouterr().err


# --- held against limits -------------------------------------------------------------------------


def test_a_difference_is_taken_round_by_round() -> None:
    ours, theirs = iter([1.0, 5.0, 3.0]), iter([0.5, 1.0, 2.9])
    rounds = Rounds({"ours": lambda: next(ours), "theirs": lambda: next(theirs)}, 3, lambda _: None)

    result = Result(Limit("what", 0.6, 0.4, unit="s"), *rounds.difference("ours", "theirs", "s"))

    assert result.figure == 0.5
    assert result.verdict == "must met"
    assert result.cells()[1:4] == ("0.600 s", "0.400 s", "0.500 s")


@pytest.mark.parametrize(("value", "text"), [(0.05, "0.050 s"), (-0.01, "-0.010 s"), (None, "")])
def test_a_difference_is_said_with_its_unit(value: float | None, text: str) -> None:
    assert said(value, "s") == text


def test_every_target_of_the_sidecar_has_a_row() -> None:
    limits = {limit.what: (limit.must, limit.aim) for case in CASES for limit in case.limits if limit.must}
    wanted = [(0.70, 0.85), (0.50, 0.60), (1.7, 1.5), (40, 60), (0.15, 0.05), (1.3, 1.15), (3, 2), (20, 12)]

    assert set(wanted) | {(4, 3)} <= set(limits.values())


def test_results_of_several_runs_make_one_table(tmp_path: Path) -> None:
    whats = [limit.what for case in CASES for limit in case.limits]
    for number, names in enumerate((whats[-2:], whats[:2], whats[-1:]), start=1):
        results = [Result(Limit(name), [float(number)]).as_json() for name in names]
        (tmp_path / f"{number}.json").write_text(json.dumps({"remark": f"run {number}.", "results": results}))

    found, remark = read_saved([tmp_path / f"{number}.json" for number in (1, 2, 3)])

    assert [result.limit.what for result in found] == [*whats[:2], *whats[-2:]]
    assert [result.figure for result in found] == [2.0, 2.0, 1.0, 3.0]
    assert remark == "run 1. run 2. run 3."


ROLLOUT = """\
{"timestamp":"2026-01-02T03:04:05.100Z","type":"event_msg","payload":{"type":"task_complete"}}
{"timestamp":"2026-01-02T03:04:05.200Z","type":"response_item","payload":{"type":"message","text":"bench 7"}}
{"timestamp":"2026-01-02T03:04:05.300Z","type":"event_msg","payload":{"type":"item_completed","at":"bench 7"}}
{"timestamp":"2026-01-02T03:04:05.400Z","type":"event_msg","payload":{"type":"task_complete"}}
{"timestamp":"2026-01-02T03:04:05.500Z","type":"event_msg","payload":{"type":"task_comp"""


def test_a_line_of_a_rollout_tells_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "codex" / "sessions"
    folder.mkdir(parents=True)
    (folder / "rollout-1.jsonl").write_text(ROLLOUT)
    cli = RealCli(name="codex", client="codex", argv=[], env={}, cwd=tmp_path, home=tmp_path)
    signs, second = turns.Signs(cli), 1767323045.0

    assert signs.told_at("item_completed", "bench 7", second) == second + 0.3
    assert signs.told_at("task_complete", "", second + 0.15) == second + 0.4
    assert signs.told_at("task_complete", "", second + 0.45) == 0.0
    assert signs.told_at("item_completed", "bench 8", second) == 0.0


def test_a_hook_of_the_users_tells_its_time(tmp_path: Path) -> None:
    cli = RealCli(name="claude", client="claude", argv=[], env={}, cwd=tmp_path, home=tmp_path)
    cli.user_hooks.mkdir()
    signs = turns.Signs(cli)
    end = signs.watch_end()

    assert end() == 0.0
    (cli.user_hooks / "Stop.jsonl").write_text("{}\n")
    assert end() == (cli.user_hooks / "Stop.jsonl").stat().st_mtime
    assert signs.watch_end()() == 0.0


@pytest.mark.parametrize("name", CLIS)
def test_a_real_cli_is_measured(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURNS", 1)

    over, reply = turns.turns(name, Setting(tmp_path, 1, 1.0, lambda _: None))

    assert [len(over.ratios), len(reply.ratios)] == [1, 1]
    assert -1 < over.ratios[0] < 10
    assert reply.ratios[0] > 0
