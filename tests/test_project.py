"""The project of a directory and the name of its room."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from csp.fast_start.room_files import is_name
from csp.project import (
    Claim,
    Project,
    claim_room,
    claims_folder,
    drop_claim,
    project_of,
    read_claims,
    room_name,
)


def git(folder: Path, *words: str) -> None:
    options = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", "-C", folder, *options, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    return folder


def project(folder: Path, identity: str = "") -> Project:
    return Project(root=folder, identity=identity or str(folder))


# --- the project of a directory ------------------------------------------------------------------


def test_a_directory_of_a_repository_belongs_to_its_top(repository: Path) -> None:
    (deep := repository / "src" / "cart").mkdir(parents=True)

    found = project_of(deep)

    assert found == Project(root=repository, identity=str(repository / ".git"))


def test_a_worktree_is_the_same_project(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "elsewhere"))

    found = project_of(tmp_path / "elsewhere")

    assert found.root == tmp_path / "elsewhere"
    assert found.identity == project_of(repository).identity


def test_a_worktree_names_no_room(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "elsewhere"))

    assert room_name(project_of(tmp_path / "elsewhere"), ()) == "shop"


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "start")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")

    found = project_of(repository / "lib")

    assert found.root == repository / "lib"
    assert found.identity != project_of(repository).identity


def test_a_link_to_a_repository_is_the_same_project(repository: Path, tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(repository)

    assert project_of(link) == project_of(repository)


def test_without_git_each_directory_is_a_project(tmp_path: Path) -> None:
    (deep := tmp_path / "notes" / "june").mkdir(parents=True)

    assert project_of(deep) == project(deep)


def test_without_git_the_nearest_room_above_counts(tmp_path: Path) -> None:
    (deep := tmp_path / "notes" / "june").mkdir(parents=True)

    assert project_of(deep, {str(tmp_path / "notes"), str(tmp_path)}) == project(tmp_path / "notes")


@pytest.mark.parametrize("content", [b"", b"gitdir", b"nonsense: x\n", b"\xff\xfe\n"])
def test_a_broken_git_file_makes_no_repository(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)

    assert project_of(tmp_path) == project(tmp_path)


def test_a_folder_named_git_alone_makes_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    assert project_of(tmp_path) == project(tmp_path)


# --- the name of the room ------------------------------------------------------------------------


@pytest.mark.parametrize(("folder", "name"), [("shop", "shop"), ("Shop", "shop"), ("api-2", "api-2")])
def test_a_room_is_named_after_the_directory(folder: str, name: str) -> None:
    assert room_name(project(Path("/w") / folder), ()) == name


@pytest.mark.parametrize(
    ("folder", "base"),
    [
        ("my_app", "my-app-"),
        ("web.site", "web-site-"),
        ("日本語", "room-"),
        ("x" * 40, "x" * 27 + "-"),
        ("..a..", "a-"),
    ],
)
def test_an_invalid_name_gets_a_suffix(folder: str, base: str) -> None:
    name = room_name(project(Path("/w") / folder), ())

    assert is_name(name)
    assert name.startswith(base)
    assert len(name) == len(base) + 4


def test_the_top_of_the_disk_has_a_room_too() -> None:
    assert room_name(project(Path("/")), ()).startswith("room-")


def test_equal_names_of_two_projects_differ(tmp_path: Path) -> None:
    first = claim_room(tmp_path, project(Path("/a/shop")), Path("/h"), 1.0)

    second = claim_room(tmp_path, project(Path("/b/shop")), Path("/h"), 2.0)

    assert first.room == "shop"
    assert second.room.startswith("shop-")
    assert room_name(project(Path("/a/shop")), read_claims(tmp_path)) == "shop"
    assert room_name(project(Path("/b/shop")), read_claims(tmp_path)) == second.room


# --- the claims ----------------------------------------------------------------------------------


def test_a_claim_is_kept_with_its_first_time(tmp_path: Path) -> None:
    claim_room(tmp_path, project(Path("/a/shop")), Path("/h"), 1.0)

    again = claim_room(tmp_path, project(Path("/a/shop")), Path("/other"), 9.0)

    assert again.created == 1.0
    assert read_claims(tmp_path) == (again,)
    assert again.history == "/other"


def test_a_name_that_a_person_chose_is_not_the_room_of_the_directory(tmp_path: Path) -> None:
    shop = project(Path("/a/shop"))
    claim_room(tmp_path, shop, Path("/h"), 1.0, named="trial")

    assert room_name(shop, read_claims(tmp_path)) == "shop"


def test_a_name_that_the_directory_would_get_anyway_is_its_room(tmp_path: Path) -> None:
    shop = project(Path("/a/shop"))
    claim_room(tmp_path, shop, Path("/h"), 1.0, named="shop")

    assert room_name(shop, read_claims(tmp_path)) == "shop"


def test_a_room_is_opened_where_it_was_used_last_or_where_its_repository_is(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (fix := tmp_path / "fix").mkdir()
    claim = claim_room(tmp_path, project(fix, str(tmp_path / "shop" / ".git")), Path("/h"), 1.0)
    homes = [claim.home]
    for folder in (fix, tmp_path / "shop" / ".git", tmp_path / "shop"):
        folder.rmdir()
        homes.append(claim.home)

    assert homes == [fix, tmp_path / "shop", tmp_path / "shop", None]


def test_a_claim_that_is_dropped_is_forgotten(tmp_path: Path) -> None:
    claim_room(tmp_path / "rooms", project(Path("/a/shop")), Path("/h"), 1.0)
    drop_claim(tmp_path / "rooms", "shop")
    drop_claim(tmp_path / "none", "shop")

    assert read_claims(tmp_path / "rooms") == ()
    assert not (tmp_path / "none").exists()


def test_the_room_of_the_directory_stays_that_if_its_name_is_written_out(tmp_path: Path) -> None:
    shop = project(Path("/a/shop"))
    claim_room(tmp_path, shop, Path("/h"), 1.0)
    claim_room(tmp_path, shop, Path("/h"), 2.0, named="shop")

    assert not read_claims(tmp_path)[0].is_named


def test_a_name_that_a_person_chose_wins_over_another_project(tmp_path: Path) -> None:
    claim_room(tmp_path, project(Path("/a/shop")), Path("/h"), 1.0)

    claim_room(tmp_path, project(Path("/b/other")), Path("/h"), 2.0, named="shop")

    assert [claim.identity for claim in read_claims(tmp_path)] == ["/b/other"]


def test_projects_of_one_name_that_start_together_get_different_rooms(tmp_path: Path) -> None:
    projects = [project(Path(f"/{number}/shop")) for number in range(16)]

    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda one: claim_room(tmp_path, one, Path("/h"), 1.0), projects))

    assert len({claim.room for claim in claims}) == len(projects)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"room": "other"}', b"\xff", b"nul\0"])
def test_a_broken_claim_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "shop.json").write_bytes(content)

    assert read_claims(tmp_path) == ()
    assert claim_room(tmp_path, project(Path("/a/shop")), Path("/h"), 1.0).room == "shop"


def test_a_claim_under_another_name_is_passed_over(tmp_path: Path) -> None:
    claim_room(tmp_path, project(Path("/a/shop")), Path("/h"), 1.0)
    (tmp_path / "shop.json").rename(tmp_path / "barn.json")

    assert read_claims(tmp_path) == ()


def test_claims_lie_in_the_data_folder_of_the_user() -> None:
    assert claims_folder({"HOME": "/home/ann"}) == Path("/home/ann/.local/share/csp/rooms")
    assert claims_folder({"HOME": "/h", "XDG_DATA_HOME": "/data"}) == Path("/data/csp/rooms")


def test_a_claim_says_what_it_is(tmp_path: Path) -> None:
    claim = claim_room(tmp_path, project(Path("/a/shop"), "/a/shop/.git"), Path("/h"), 1.0)

    assert claim == Claim(room="shop", identity="/a/shop/.git", dir="/a/shop", history="/h", created=1.0)
