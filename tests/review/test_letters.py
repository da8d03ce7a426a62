"""The files of a mailbox, without a gateway."""

import asyncio
import contextlib
import gc
import json
import os
import select
from pathlib import Path

import pytest

from csp.protocol.review_messages import PlanProposed, RunRole, SessionAck, SessionStart
from csp.review.mailbox import (
    GRACE_S,
    MAX_FILE_BYTES,
    POLL_S,
    InvalidMailboxFile,
    Mailbox,
    MailboxMessage,
    folder_watcher,
    give_back,
    shown,
)

ACK = json.dumps(
    {
        "schema_version": "0.1",
        "timestamp": "2026-01-01T00:00:00Z",
        "sender": "reviewer",
        "run_id": "r",
        "message_type": "session.ack",
        "body": {},
    }
)


class Clock:
    """A clock that stands still until a test moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mailbox(tmp_path: Path, clock: Clock) -> Mailbox:
    made = Mailbox(tmp_path / "room" / "mailbox", clock)
    made.make()
    return made


def write(mailbox: Mailbox, data: str, *, name: str = "a.json") -> Path:
    path = mailbox.root / "reviewer" / name
    path.write_text(data)
    return path


@pytest.mark.parametrize("half", [ACK[:60], '{"body": {}', ""])
def test_half_a_file_is_left_while_it_is_young(mailbox: Mailbox, clock: Clock, half: str) -> None:
    path = write(mailbox, half)
    assert list(mailbox.letters()) == []
    clock.now += GRACE_S / 2
    assert list(mailbox.letters()) == []
    with path.open("a") as file:
        file.write(" ")
    clock.now += GRACE_S / 2
    # It has grown, so somebody is at work on it.
    assert list(mailbox.letters()) == []
    clock.now += GRACE_S
    (found,) = mailbox.letters()

    assert isinstance(found, InvalidMailboxFile) and "not valid JSON" in found.error.message


def test_time_of_the_file_does_not_keep_it_young(mailbox: Mailbox, clock: Clock) -> None:
    os.utime(write(mailbox, "{half"), (4e9, 4e9))
    assert list(mailbox.letters()) == []
    clock.now += GRACE_S

    assert len(list(mailbox.letters())) == 1


def test_whole_file_is_read_at_once(mailbox: Mailbox) -> None:
    path = write(mailbox, ACK)
    (found,) = mailbox.letters()

    assert isinstance(found, MailboxMessage)
    assert (found.path, found.role, found.run) == (path, RunRole.REVIEWER, "r")


def test_same_words_have_the_same_key_in_one_folder_alone(mailbox: Mailbox) -> None:
    write(mailbox, ACK, name="a.json")
    write(mailbox, f" {ACK} ", name="b.json")
    (mailbox.root / "builder" / "c.json").write_text(ACK)
    builder, one, two = (found.key for found in mailbox.letters() if isinstance(found, MailboxMessage))

    assert one == two != builder


def test_hidden_and_other_files_are_not_mail(mailbox: Mailbox) -> None:
    write(mailbox, ACK, name=".a.json")
    write(mailbox, ACK, name="a.json.tmp")
    write(mailbox, ACK, name="a.txt")

    assert list(mailbox.letters()) == []


def test_link_and_flood_are_refused(mailbox: Mailbox, clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(ACK)
    (mailbox.root / "reviewer" / "link.json").symlink_to(tmp_path / "secret.json")
    write(mailbox, " " * (MAX_FILE_BYTES + 1), name="long.json")
    assert [one.path.name for one in mailbox.letters()] == ["link.json"]
    clock.now += GRACE_S
    link, long = mailbox.letters()

    assert isinstance(link, InvalidMailboxFile) and "cannot be read" in link.error.message
    assert isinstance(long, InvalidMailboxFile) and "more than" in long.error.message


def test_files_are_put_away(mailbox: Mailbox) -> None:
    path = write(mailbox, ACK)
    (found,) = mailbox.letters()
    assert isinstance(found, MailboxMessage)
    mailbox.handled(found)
    mailbox.handled(found)
    other = write(mailbox, "{}")
    (bad,) = mailbox.letters()
    mailbox.refused(bad, "no message")

    assert not path.exists() and not other.exists()
    assert [one.name for one in (path.parent / "handled").iterdir()] == [f"{found.key[:8]}-a.json"]
    reasons = [one.read_text() for one in (path.parent / "refused").glob("*.reason.txt")]
    assert reasons == ["no message\n"]


def test_what_is_no_plain_file_is_refused_and_nobody_waits_for_it(mailbox: Mailbox) -> None:
    folder = mailbox.root / "reviewer"
    os.mkfifo(folder / "a.json")
    (folder / "b.json").mkdir()
    (folder / "c.json").symlink_to("/nonexistent")
    found = list(mailbox.letters())

    assert [type(one) for one in found] == [InvalidMailboxFile] * 3
    for one in found:
        mailbox.refused(one, "no")
    assert list(mailbox.letters()) == [] and len(list((folder / "refused").iterdir())) == 6


@pytest.mark.parametrize("name", ["x" * 250 + ".json", os.fsdecode(b"\xff\xfe.json"), "a\nb\x1b[31m.json"])
def test_file_of_any_name_can_be_told_of_and_put_away(mailbox: Mailbox, name: str) -> None:
    write(mailbox, "{}", name=name)
    (bad,) = mailbox.letters()
    mailbox.refused(bad, "no")
    write(mailbox, ACK, name=name)
    (good,) = mailbox.letters()
    assert isinstance(good, MailboxMessage)
    mailbox.handled(good)

    assert list(mailbox.letters()) == []
    assert shown(bad.path).isprintable() and len(shown(bad.path).encode()) <= 250


def test_file_that_has_taken_the_place_of_a_read_one_is_not_lost(mailbox: Mailbox) -> None:
    write(mailbox, ACK)
    (first,) = mailbox.letters()
    assert isinstance(first, MailboxMessage)
    path = write(mailbox, ACK.replace("00Z", "01Z"))
    mailbox.handled(first)
    (second,) = mailbox.letters()

    assert isinstance(second, MailboxMessage) and second.key != first.key
    assert list((path.parent / "handled").iterdir()) == []


def test_a_file_is_given_back_beside_one_that_has_come_meanwhile(mailbox: Mailbox) -> None:
    moved = mailbox.root / "builder" / "handled" / "moved.json"
    moved.write_text("older")
    path = write(mailbox, "newer")
    give_back(moved, path)
    (other,) = (found for found in path.parent.glob("*.json") if found != path)

    assert (path.read_text(), other.read_text(), moved.exists()) == ("newer", "older", False)


def test_json_that_is_nested_too_deep_to_be_read_is_not_waited_for(mailbox: Mailbox) -> None:
    write(mailbox, "[" * 100_000)

    assert [type(found) for found in mailbox.letters()] == [InvalidMailboxFile]


def test_file_that_cannot_be_put_away_is_not_read_for_ever(mailbox: Mailbox) -> None:
    path = write(mailbox, "{}")
    (bad,) = mailbox.letters()
    (path.parent / "refused").rmdir()
    (path.parent / "refused").write_text("in the way")
    with pytest.raises(OSError):
        mailbox.refused(bad, "no")

    assert list(mailbox.letters()) == []
    write(mailbox, ACK)
    assert len(list(mailbox.letters())) == 1


def test_inbox_has_the_same_name_and_bytes_when_it_is_posted_again(mailbox: Mailbox) -> None:
    mailbox.post(7, "r", RunRole.REVIEWER, 1.0, SessionAck(note="hi"))
    (path,) = (mailbox.root / "builder" / "inbox").iterdir()
    before = (path.name, path.read_bytes())
    path.unlink()
    mailbox.post(7, "r", RunRole.REVIEWER, 1.0, SessionAck(note="hi"))

    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [before]


def test_first_message_lies_in_both_inboxes(mailbox: Mailbox) -> None:
    mailbox.post(7, "r", RunRole.BUILDER, 1.0, SessionStart(goal="g"))
    mailbox.post(8, "r", RunRole.REVIEWER, 1.0, SessionAck())

    assert [len(list((mailbox.root / role / "inbox").iterdir())) for role in RunRole] == [2, 1]


async def test_mail_is_looked_for_where_the_kernel_tells_nothing(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.review.mailbox.folder_watcher", lambda folders: None)
    monkeypatch.setattr("csp.review.mailbox.POLL_S", 0.01)
    news = mailbox.news()
    await anext(news)
    write(mailbox, ACK)
    await anext(news)

    assert len(list(mailbox.letters())) == 1
    await news.aclose()


def propose(mailbox: Mailbox, plan_path: str) -> MailboxMessage | InvalidMailboxFile:
    body = {"plan_path": plan_path, "summary": "3-step refactor plan", "confidence": 0.58}
    message = {**json.loads(ACK), "sender": "builder", "message_type": "plan.proposed", "body": body}
    (mailbox.root / "builder" / "plan.json").write_text(json.dumps(message))
    (found,) = mailbox.letters()
    return found


def test_plan_may_lie_in_a_file_as_the_seed_has_it(mailbox: Mailbox) -> None:
    folder = mailbox.root.parent / "runs" / "2025-10-06-refactor"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text('{"steps": ["a", "b"], "summary": "other words"}')
    found = propose(mailbox, "runs/2025-10-06-refactor/plan.json")

    assert isinstance(found, MailboxMessage) and isinstance(found.body, PlanProposed)
    assert (found.body.steps, found.body.summary, found.body.confidence) == (
        ("a", "b"),
        "3-step refactor plan",
        0.58,
    )


@pytest.mark.parametrize(
    ("plan_path", "problem"),
    [
        ("../secret.json", "points elsewhere"),
        ("/etc/hostname", "points elsewhere"),
        ("runs/../../secret.json", "points elsewhere"),
        ("runs/link.json", "points elsewhere"),
        ("runs/missing.json", "cannot be read"),
        ("runs/a\0b", "cannot be read"),
        ("runs", "not a regular file"),
        ("runs/half.json", "not valid JSON"),
    ],
)
def test_plan_is_read_from_no_other_place(mailbox: Mailbox, plan_path: str, problem: str) -> None:
    room = mailbox.root.parent
    (room / "runs").mkdir()
    (room / "runs" / "half.json").write_text("{")
    (room.parent / "secret.json").write_text('{"steps": ["a"]}')
    (room / "runs" / "link.json").symlink_to(room.parent / "secret.json")
    found = propose(mailbox, plan_path)

    assert isinstance(found, InvalidMailboxFile) and problem in found.error.message, found


def test_letters_come_by_name_the_builders_first(mailbox: Mailbox) -> None:
    for name in ("b.json", "a.json"):
        write(mailbox, ACK, name=name)
    (mailbox.root / "builder" / "z.json").write_text(ACK)

    found = [f"{letter.role}/{letter.path.name}" for letter in mailbox.letters()]
    assert found == ["builder/z.json", "reviewer/a.json", "reviewer/b.json"]


def test_a_file_of_the_largest_size_is_read(mailbox: Mailbox) -> None:
    write(mailbox, ACK.ljust(MAX_FILE_BYTES), name="most.json")
    write(mailbox, ACK.ljust(MAX_FILE_BYTES + 1), name="over.json")
    most, over = mailbox.letters()

    assert isinstance(most, MailboxMessage)
    assert isinstance(over, InvalidMailboxFile) and f"more than {MAX_FILE_BYTES} bytes" in over.error.message


@pytest.mark.parametrize("run_id", ["../x", "", "A B", "a.lock"])
def test_an_id_that_is_no_run_is_refused(mailbox: Mailbox, run_id: str) -> None:
    write(mailbox, ACK.replace('"run_id": "r"', f'"run_id": "{run_id}"'))
    (found,) = mailbox.letters()

    assert isinstance(found, InvalidMailboxFile) and "run_id" in found.error.message


def test_a_copy_is_known_by_its_words(mailbox: Mailbox) -> None:
    write(mailbox, ACK)
    (first,) = mailbox.letters()
    assert isinstance(first, MailboxMessage) and not mailbox.is_copy(first)
    mailbox.handled(first)
    write(mailbox, ACK, name="again.json")
    write(mailbox, ACK.replace("00:00:00Z", "00:00:01Z"), name="other.json")
    again, other = mailbox.letters()

    assert isinstance(again, MailboxMessage) and mailbox.is_copy(again)
    assert isinstance(other, MailboxMessage) and not mailbox.is_copy(other)


def test_a_long_name_is_shortened_for_people(mailbox: Mailbox) -> None:
    name = "x" * 81

    assert shown(Path("x" * 80)) == "x" * 80
    assert shown(Path(name)) == "x" * 77 + "..."
    assert shown(Path("a\x1bb")) == "a?b"


@pytest.mark.parametrize("role", list(RunRole))
async def test_a_watched_folder_tells_of_a_file_that_is_moved_in(mailbox: Mailbox, role: RunRole) -> None:
    watcher = folder_watcher([mailbox.root / each for each in RunRole])
    temporary = mailbox.root / role / "inbox" / "x.tmp"
    temporary.write_text(ACK)
    temporary.rename(mailbox.root / role / "x.json")
    # What the kernel has to tell is there as soon as the file has its name.
    is_told = bool(select.select([watcher.fd], [], [], 0)[0])
    watcher.close()

    assert is_told


async def test_news_come_from_the_kernel_long_before_the_next_look(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.review.mailbox.POLL_S", 200.0)
    news = mailbox.news()
    await anext(news)
    write(mailbox, ACK)
    async with asyncio.timeout(100):
        await anext(news)
    await news.aclose()


def test_half_a_file_is_no_younger_for_being_looked_at(mailbox: Mailbox, clock: Clock) -> None:
    write(mailbox, ACK[:60])
    for _ in range(4):
        assert list(mailbox.letters()) == []
        clock.now += GRACE_S / 4

    assert [type(found) for found in mailbox.letters()] == [InvalidMailboxFile]


def test_what_is_posted_again_is_not_written_again(mailbox: Mailbox) -> None:
    for _ in range(2):
        mailbox.post(1, "r", RunRole.REVIEWER, 1.0, SessionAck())
        (path,) = (mailbox.root / "builder" / "inbox").iterdir()
        os.utime(path, (5.0, 5.0))
        before = path.stat().st_ino
    mailbox.post(1, "r", RunRole.REVIEWER, 1.0, SessionAck())

    assert (path.stat().st_ino, path.stat().st_mtime) == (before, 5.0)


async def test_nobody_is_watched_once_the_news_are_closed(mailbox: Mailbox) -> None:
    # What other tests have left behind must not be collected in between.
    gc.collect()
    before = watches()
    news = mailbox.news()
    await anext(news)
    assert len(watches() - before) == 1
    await news.aclose()

    assert watches() <= before


def watches() -> set[str]:
    """Return the open descriptors through which the kernel tells of changed files."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if "inotify" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(fd)
    return found


def test_where_the_kernel_tells_nothing_it_is_looked_every_second() -> None:
    assert (POLL_S, GRACE_S) == (1.0, 1.0)
