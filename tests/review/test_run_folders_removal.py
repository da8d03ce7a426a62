"""The files of old runs, when their past is taken out of the journal."""

import json
from pathlib import Path

import pytest

from csp.review.mailbox import Mailbox
from csp.review.run_folders import RunFolders, forget_runs
from csp.review.run_git import Git


@pytest.fixture
def folders(tmp_path: Path) -> RunFolders:
    made = RunFolders(tmp_path / "runs", Git({}))
    for name, seq in (("old", 4), ("at", 5), ("kept", 1)):
        made.path(name).mkdir(parents=True)
        (made.path(name) / "run.json").write_text(json.dumps({"seq": seq}))
    return made


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    made = Mailbox(tmp_path / "mailbox")
    made.make()
    for folder in ("inbox", "handled", "refused"):
        for role in ("builder", "reviewer"):
            for run in ("old", "at", "kept"):
                (made.root / role / folder / f"1-{run}.json").write_text(json.dumps({"run_id": run}))
    (made.root / "reviewer" / "refused" / "1-old.json.reason.txt").write_text("of old")
    (made.root / "reviewer" / "refused" / "1-at.json.reason.txt").write_text("of at")
    return made


def test_runs_whose_last_event_is_older_are_forgotten_but_those_to_keep(
    folders: RunFolders, mailbox: Mailbox
) -> None:
    gone = forget_runs(folders, mailbox, before=5, keep=["kept"])

    assert gone == ["old"]
    assert folders.names() == ["at", "kept"]
    left = sorted(str(path.relative_to(mailbox.root)) for path in mailbox.root.rglob("*") if path.is_file())
    assert [name for name in left if "old" in name] == []
    assert len(left) == 13 and "reviewer/refused/1-at.json.reason.txt" in left


def test_one_event_later_the_next_run_is_older_too(folders: RunFolders, mailbox: Mailbox) -> None:
    assert forget_runs(folders, mailbox, before=6, keep=[]) == ["at", "kept", "old"]
    assert [path for path in mailbox.root.rglob("*") if path.is_file()] == []


def test_links_and_folders_in_the_mailbox_are_left_alone(
    folders: RunFolders, mailbox: Mailbox, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('"old"')
    (mailbox.root / "builder" / "handled" / "link.json").symlink_to(elsewhere)
    (mailbox.root / "builder" / "handled" / "folder").mkdir()
    forget_runs(folders, mailbox, before=5, keep=["kept"])

    assert (mailbox.root / "builder" / "handled" / "link.json").is_symlink() and elsewhere.exists()


def test_mail_of_a_run_whose_name_is_longer_stays(folders: RunFolders, mailbox: Mailbox) -> None:
    path = mailbox.root / "builder" / "inbox" / "2.json"
    path.write_text(json.dumps({"run_id": "old-2"}))
    forget_runs(folders, mailbox, before=5, keep=["kept"])

    assert path.exists()
