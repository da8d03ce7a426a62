"""The files of a mailbox, without a gateway."""

import json
import os
import time
from pathlib import Path

import pytest

from csp.review.mailbox import MAX_FILE_BYTES, BadLetter, Letter, Mailbox
from csp.wire import RunRole

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


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    made = Mailbox(tmp_path / "mailbox")
    made.make()
    return made


def write(mailbox: Mailbox, data: str, *, age_s: float = 0.0, name: str = "a.json") -> Path:
    path = mailbox.root / "reviewer" / name
    path.write_text(data)
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_half_a_file_is_left_while_it_is_young(mailbox: Mailbox) -> None:
    # From the future, so that no machine is too slow for it.
    write(mailbox, ACK[:60], age_s=-3600)
    assert list(mailbox.letters()) == []
    write(mailbox, ACK[:60], age_s=10)
    (found,) = mailbox.letters()

    assert isinstance(found, BadLetter) and "not json" in found.error.message


def test_whole_file_is_read_at_once(mailbox: Mailbox) -> None:
    path = write(mailbox, ACK, age_s=-3600)
    (found,) = mailbox.letters()

    assert isinstance(found, Letter)
    assert (found.path, found.role, found.run) == (path, RunRole.REVIEWER, "r")


def test_same_words_have_the_same_key_in_one_folder_alone(mailbox: Mailbox) -> None:
    write(mailbox, ACK, name="a.json")
    write(mailbox, f" {ACK} ", name="b.json")
    (mailbox.root / "builder" / "c.json").write_text(ACK)
    builder, one, two = (found.key for found in mailbox.letters() if isinstance(found, Letter))

    assert one == two != builder


def test_hidden_and_other_files_are_not_mail(mailbox: Mailbox) -> None:
    write(mailbox, ACK, name=".a.json")
    write(mailbox, ACK, name="a.json.tmp")
    write(mailbox, ACK, name="a.txt")

    assert list(mailbox.letters()) == []


def test_link_and_flood_are_refused(mailbox: Mailbox, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(ACK)
    (mailbox.root / "reviewer" / "link.json").symlink_to(tmp_path / "secret.json")
    write(mailbox, " " * (MAX_FILE_BYTES + 1), name="long.json")
    link, long = mailbox.letters()

    assert isinstance(link, BadLetter) and "cannot be read" in link.error.message
    assert isinstance(long, BadLetter) and "more than" in long.error.message


def test_files_are_put_away(mailbox: Mailbox) -> None:
    path = write(mailbox, ACK)
    (found,) = mailbox.letters()
    assert isinstance(found, Letter)
    mailbox.handled(found)
    mailbox.handled(found)
    other = write(mailbox, "{}")
    mailbox.refused(other, "no message")

    assert not path.exists() and not other.exists()
    assert [one.name for one in (path.parent / "handled").iterdir()] == [f"{found.key[:8]}-a.json"]
    reasons = [one.read_text() for one in (path.parent / "refused").glob("*.reason.txt")]
    assert reasons == ["no message\n"]
