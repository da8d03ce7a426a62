"""How bin/setup.sh finds or installs what CSP runs on. Here every tool is a script that installs nothing."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.panes.scripts import make_clone, make_program, make_venv, tools

#: A uv that works and writes down what it was called with, and a few variables.
UV: Final = (
    'case "$1" in --version) echo "uv 0.9.0 (a build)";; '
    'python) [ "$UV_PYTHON_PREFERENCE" = only-system ] && [ "$*" = "python find --system >=3.11" ];; '
    'sync) echo "$PWD|$UV_PROJECT_ENVIRONMENT|${VIRTUAL_ENV-}|${UV_PYTHON_PREFERENCE-}|$*" >>"$HOME/synced"; '
    'mkdir -p "$UV_PROJECT_ENVIRONMENT/bin";; esac'
)

Runner: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


@pytest.fixture
def run(clone: Path, tmp_path: Path) -> Runner:
    """Run a line of shell after setup.sh, with the given programs on the PATH."""

    def run(
        line: str, env: dict[str, str] | None = None, **programs: str
    ) -> "subprocess.CompletedProcess[str]":
        path = tmp_path / "path"
        if not path.exists():
            tools(path, **programs)
        given = {"PATH": str(path), "HOME": str(tmp_path)} | (env or {})
        script = f"set -euo pipefail\nsource {clone}/bin/setup.sh\n{line}"
        return subprocess.run(
            ["bash", "-c", script, "some/script"],
            cwd=tmp_path,
            env=given,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def called(tmp_path: Path, name: str = "called") -> list[str]:
    path = tmp_path / name
    return path.read_text().splitlines() if path.exists() else []


# --- what is printed -----------------------------------------------------------------------------


def test_words_for_the_person_go_to_stderr_with_the_name_of_the_script(run: Runner) -> None:
    done = run("say two words; die the end; echo more")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "script: two words\nscript: the end\n")


def test_what_an_installer_prints_is_shown_only_if_it_fails(run: Runner) -> None:
    done = run(
        'quietly installer; echo "then $?"; quietly installer broken || echo "then $?"',
        installer='[ "$1" = broken ] && echo no space >&2 && exit 7; echo chatter',
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "then 0\nthen 1\n", "no space\n")


def test_an_installer_is_asked_nothing(run: Runner) -> None:
    assert (
        run("echo typed ahead | { quietly reader; cat; }", reader="cat >/dev/null").stdout == "typed ahead\n"
    )


# --- packages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt_get", "-qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends libfoo libbar"),
        ("dnf", "install -y -q libfoo libbar"),
        ("brew", "install --quiet libfoo libbar"),
    ],
)
def test_packages_are_installed_without_questions(
    run: Runner, tmp_path: Path, manager: str, line: str
) -> None:
    note = 'echo "$*" >>"$HOME/called"'
    done = run("install_packages libfoo libbar", **{manager: note}, sudo='exec "$@"')

    assert done.returncode == 0, done.stderr
    assert called(tmp_path)[-1] == line


def test_old_lists_of_packages_are_no_reason_to_stop(run: Runner, tmp_path: Path) -> None:
    apt = 'echo "$DEBIAN_FRONTEND $*" >>"$HOME/called"; case "$*" in *update*) exit 1;; esac'
    done = run("install_packages tmux", apt_get=apt, sudo='exec "$@"')

    assert done.returncode == 0
    assert "script: apt-get update failed; going on with the lists that are here" in done.stderr
    assert called(tmp_path)[0].startswith("noninteractive ")


def test_lists_of_packages_are_brought_up_to_date_first(run: Runner, tmp_path: Path) -> None:
    run(
        "install_packages tmux",
        apt_get='echo "$5" >>"$HOME/called"; echo "$4" >>"$HOME/called"',
        sudo='exec "$@"',
    )

    assert [word for word in called(tmp_path) if word in ("update", "install")] == ["update", "install"]


def test_a_package_that_cannot_be_installed_ends_the_set_up(run: Runner) -> None:
    done = run(
        "install_packages tmux; echo goes on", dnf="echo nothing provides tmux; exit 1", sudo='exec "$@"'
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("nothing provides tmux\n")


@pytest.mark.parametrize(
    ("manager", "packages"), [("apt_get", "a1 b1"), ("dnf", "a2 b2"), ("brew", "a3 b3"), ("other", "a b")]
)
def test_each_package_manager_has_names_of_its_own(run: Runner, manager: str, packages: str) -> None:
    rows = "\\n".join(("a a1 a2 a3", "bash x x x", "b b1 b2 b3", ""))
    done = run(f"install_packages() {{ echo $*; }}; ensure_commands $'{rows}'", **{manager: ""})

    assert done.stdout == f"{packages}\n"


def test_with_every_command_there_nothing_is_installed(run: Runner) -> None:
    assert run("install_packages() { echo $*; }; ensure_commands 'bash b b b'", apt_get="").stdout == ""


@pytest.mark.parametrize(("env", "words"), [({}, "dnf x"), ({"CI": "1"}, "-n dnf x")])
def test_sudo_is_announced_and_asks_for_no_password_in_ci(
    clone: Path, run: Runner, env: dict[str, str], words: str
) -> None:
    as_somebody(clone)
    done = run("as_root dnf x", env, sudo='echo "$*" >"$HOME/called"')

    assert done.stderr == "script: sudo, which may ask for your password, runs: dnf x\n"
    assert (clone.parent / "called").read_text() == f"{words}\n"


def test_without_root_and_sudo_it_says_what_to_run(clone: Path, run: Runner) -> None:
    as_somebody(clone)
    done = run("as_root dnf x; echo goes on")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "script: root is needed, but there is no sudo; please run as root: dnf x\n"


def test_root_needs_no_sudo(clone: Path, run: Runner, tmp_path: Path) -> None:
    as_somebody(clone, 0)
    done = run("as_root dnf x", dnf='echo "$*" >"$HOME/called"', sudo="exit 1")

    assert (done.returncode, done.stderr, called(tmp_path)) == (0, "", ["x"])


def as_somebody(clone: Path, user: int = 1000) -> None:
    """Make the script believe that a user runs it; bash does not let its variable be changed."""
    path = clone / "bin" / "setup.sh"
    text = path.read_text()
    assert text.count("$EUID") == 1
    path.write_text(text.replace("$EUID", str(user)))


# --- uv ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "is_used"),
    [("uv 0.4.30", False), ("uv 0.5.0", True), ("uv 0.10.1 (a build)", True), ("uv 1.0.2", True)],
)
def test_an_old_uv_is_not_used(run: Runner, version: str, is_used: bool) -> None:
    done = run("find_uv && echo $UV", uv=f"echo '{version}'")

    assert done.stdout == ("uv\n" if is_used else "")


def test_a_uv_that_does_not_run_is_not_used(run: Runner) -> None:
    assert run("find_uv", uv="exit 127").returncode == 1


@pytest.mark.parametrize("place", [".cache/csp/uv/bin/uv", ".local/bin/uv"])
def test_uv_is_found_where_installers_put_it(run: Runner, tmp_path: Path, place: str) -> None:
    make_program(tmp_path / place, UV)

    assert run("ensure_uv; echo $UV").stdout == f"{tmp_path / place}\n"


def test_uv_of_the_cache_that_the_person_has_named_is_found(run: Runner, tmp_path: Path) -> None:
    make_program(tmp_path / "cache" / "csp" / "uv" / "bin" / "uv", UV)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    assert run("ensure_uv; echo $UV", env).stdout == f"{tmp_path}/cache/csp/uv/bin/uv\n"


#: A python3 that can make environments; what their own python does is up to the test.
PYTHON: Final = (
    'case "$*" in "-I -c import ensurepip, venv") exit 0;; '
    '"-I -m venv "*) mkdir -p "$4/bin"; cp "$HOME/python" "$4/bin/python";; *) exit 1;; esac'
)


def test_a_missing_uv_comes_from_pypi_into_the_cache(run: Runner, tmp_path: Path) -> None:
    make_program(tmp_path / "new-uv", UV)
    make_program(tmp_path / "python", 'echo "$*" >>"$HOME/called"; cp "$HOME/new-uv" "${0%/*}/uv"')
    done = run("ensure_uv; echo $UV", python3=PYTHON)
    cache = tmp_path / ".cache" / "csp" / "uv"

    assert done.stdout == f"{cache}/bin/uv\n", done.stderr
    assert done.stderr == f"script: installing uv into {cache}\n"
    assert [path.name for path in cache.iterdir()] == ["bin"]
    assert called(tmp_path) == ["-I -m pip install --quiet --disable-pip-version-check uv>=0.5"]


#: A curl that gets a script which installs a uv.
CURL: Final = (
    'echo "$*" >>"$HOME/called"; echo \'echo "$UV_NO_MODIFY_PATH" >>"$HOME/called"\'; '
    'echo \'mkdir -p "$UV_INSTALL_DIR"; cp "$HOME/new-uv" "$UV_INSTALL_DIR/uv"\''
)


@pytest.mark.parametrize("python", ["exit 1", 'case "$*" in *ensurepip*) exit 0;; *) exit 1;; esac'])
def test_where_pypi_does_not_help_uv_comes_from_its_site(run: Runner, tmp_path: Path, python: str) -> None:
    make_program(tmp_path / "new-uv", UV)
    done = run("ensure_uv; echo $UV", python3=python, curl=CURL)

    assert done.stdout == f"{tmp_path}/.cache/csp/uv/bin/uv\n", done.stderr
    assert called(tmp_path) == ["-LsSf https://astral.sh/uv/install.sh", "1"]


def test_a_debian_without_venv_gets_it_first(run: Runner, tmp_path: Path) -> None:
    apt = 'echo "$*" >>"$HOME/called"'
    run("ensure_uv", python3="exit 1", apt_get=apt, sudo='exec "$@"')

    assert called(tmp_path)[-1].endswith(" install -y --no-install-recommends python3 python3-venv")


def test_on_a_mac_uv_comes_from_brew(run: Runner, tmp_path: Path) -> None:
    make_program(tmp_path / "new-uv", UV)
    brew = 'echo "$*" >>"$HOME/called"; cp "$HOME/new-uv" "${0%/*}/uv"'
    done = run("uname() { echo Darwin; }; ensure_uv; echo $UV", brew=brew)

    assert (done.stdout, called(tmp_path)) == ("uv\n", ["install --quiet uv"])


def test_without_a_way_to_get_uv_it_says_where_to_look(run: Runner) -> None:
    done = run("ensure_uv; echo goes on", python3="exit 1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "script: uv could not be installed; see https://docs.astral.sh/uv/ and run this again"
    )


# --- the environment -----------------------------------------------------------------------------


def test_packages_come_from_the_lock_without_asking_the_network(
    clone: Path, run: Runner, tmp_path: Path
) -> None:
    done = run("ensure_uv; sync_venv --extra mcp", {"VIRTUAL_ENV": "/elsewhere"}, uv=UV)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert called(tmp_path, "synced") == [
        f"{clone}|{clone}/.venv||only-system|sync --frozen --inexact --quiet --offline --extra mcp"
    ]
    assert (clone / ".venv" / ".csp-synced").read_text() == f"{clone}\n"


def test_packages_that_are_missing_are_downloaded_with_a_word_before(run: Runner, tmp_path: Path) -> None:
    uv = UV.replace("sync) ", 'sync) case "$*" in *--offline*) echo not there >&2; exit 1;; esac; ')
    done = run("ensure_uv; sync_venv --extra mcp", uv=uv)

    assert (done.returncode, done.stderr) == (0, "script: downloading Python packages into .venv\n")
    assert called(tmp_path, "synced")[0].endswith("|sync --frozen --inexact --quiet --extra mcp")


#: A uv behind a proxy whose certificate only the system knows.
_PROXIED: Final = (
    'sync) case "$*" in *--offline*) exit 1;; esac; '
    'if [ "${UV_SYSTEM_CERTS-}${UV_NATIVE_TLS-}" != truetrue ]; then '
    'echo "error: invalid peer certificate: UnknownIssuer" >&2; exit 2; fi; '
)


def test_a_certificate_that_only_the_system_knows_is_accepted(
    clone: Path, run: Runner, tmp_path: Path
) -> None:
    done = run("ensure_uv; sync_venv", uv=UV.replace("sync) ", _PROXIED))

    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "script: downloading Python packages into .venv",
            "script: uv does not know the certificate of the package index; "
            "trying again with those of this system",
        ],
    )
    assert (clone / ".venv" / ".csp-synced").exists()


def test_a_certificate_that_nobody_knows_is_the_reason_that_is_shown(run: Runner) -> None:
    uv = UV.replace("sync) ", "sync) echo invalid peer certificate: UnknownIssuer >&2; exit 2; ")
    done = run("ensure_uv; sync_venv || echo failed", uv=uv)

    assert done.stdout == "failed\n"
    assert done.stderr.endswith("invalid peer certificate: UnknownIssuer\n")


def test_packages_that_cannot_be_downloaded_leave_no_stamp(clone: Path, run: Runner) -> None:
    uv = UV.replace("sync) ", "sync) echo no network >&2; exit 2; ")
    (clone / ".venv").mkdir()
    done = run("ensure_uv; sync_venv || echo failed", uv=uv)

    assert done.stdout == "failed\n"
    assert done.stderr.endswith("no network\n")
    assert not (clone / ".venv" / ".csp-synced").exists()


@pytest.mark.parametrize(
    ("env", "uv", "preference"),
    [
        ({}, UV, "only-system"),
        ({"UV_PYTHON_PREFERENCE": "managed"}, UV, "managed"),
        ({"UV_PYTHON": "3.14"}, UV, ""),
        ({"UV_PYTHON": "3.14"}, UV.replace("system >=3.11", "system 3.14"), "only-system"),
        ({}, UV.replace("python) ", "python) exit 2; "), ""),
    ],
)
def test_a_python_of_the_system_is_preferred_unless_the_person_says_otherwise(
    run: Runner, tmp_path: Path, env: dict[str, str], uv: str, preference: str
) -> None:
    run("ensure_uv; sync_venv", env, uv=uv)

    assert called(tmp_path, "synced")[0].split("|")[3] == preference


def test_an_environment_is_set_up_again_only_if_something_has_changed(clone: Path, run: Runner) -> None:
    stamp = clone / ".venv" / ".csp-synced"

    def is_fresh() -> bool:
        return run("is_venv_fresh").returncode == 0

    assert not is_fresh()
    make_venv(clone)
    assert is_fresh()
    for name in ("uv.lock", "pyproject.toml"):
        os.utime(clone / name, (stamp.stat().st_mtime + 5,) * 2)
        assert not is_fresh(), name
        os.utime(clone / name, (stamp.stat().st_mtime - 5,) * 2)
    assert is_fresh()
    (clone / ".venv" / "bin" / "csp").chmod(0o644)
    assert not is_fresh()
    (clone / ".venv" / "bin" / "csp").chmod(0o755)
    stamp.write_text("/where/it/was/copied/from\n")
    assert not is_fresh()
    stamp.unlink()
    assert not is_fresh()


@pytest.mark.parametrize("script", ["csp", "start-llm-groupchat.sh"])
def test_the_first_run_makes_an_environment_that_serves_mcp(clone: Path, tmp_path: Path, script: str) -> None:
    csp = 'printf "#!/bin/sh\\necho ran \\"\\$@\\"\\n" >"$UV_PROJECT_ENVIRONMENT/bin/csp"; '
    csp += 'chmod +x "$UV_PROJECT_ENVIRONMENT/bin/csp"'
    path = tools(tmp_path / "path", tmux="", uv=UV.replace(";; esac", f"; {csp};; esac"))
    env = {"PATH": str(path), "HOME": str(tmp_path)}
    command = [str(clone / "bin" / script), "--room", "x"]
    first, second = (
        subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        for _ in range(2)
    )

    assert first.stdout == second.stdout == f"ran {'' if script == 'csp' else 'up '}--room x\n", first.stderr
    assert first.stderr.startswith(f"{script}: setting up .venv")
    assert second.stderr == ""
    (line,) = called(tmp_path, "synced")
    assert line.endswith(" --no-dev --extra lan --compile-bytecode")


# --- the packages of models ----------------------------------------------------------------------


def test_the_packages_of_models_are_those_of_the_named_file(run: Runner, tmp_path: Path) -> None:
    toml = tmp_path / "other.toml"
    toml.write_text(
        "provider = \"openai\"\n  provider='gemini' # both by one package\n"
        '#provider = "anthropic"\nname = "anthropic"\nprovider = "nobody"\n'
    )

    assert run(f"wanted_extras {toml}; wanted_extras {tmp_path}/none").stdout == "openai\n"


def test_the_settings_are_those_of_the_directory_or_of_its_repository(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "repo" / "sub" / "own").mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "sub" / "own" / "csp.toml").touch()
    done = run("project_file; cd repo/sub; project_file; cd own; project_file; cd /; project_file")

    assert done.stdout.splitlines()[1:] == [f"{tmp_path}/repo/csp.toml", "csp.toml", "/csp.toml"]


def test_a_package_of_a_model_that_cannot_be_installed_does_not_stop_the_room(
    clone: Path, tmp_path: Path
) -> None:
    make_venv(clone)
    make_program(clone / ".venv" / "bin" / "python", "exit 1")
    (tmp_path / "models.toml").write_text('provider = "anthropic"\n')
    path = tools(tmp_path / "path", tmux="", uv=UV.replace("sync) ", "sync) exit 1; "))
    env = {"PATH": str(path), "HOME": str(tmp_path), "CSP_CONFIG_FILE": str(tmp_path / "models.toml")}
    command = [str(clone / "bin" / "start-llm-groupchat.sh")]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "up")
    assert "installing the package anthropic, which csp.toml wants" in done.stderr
    assert "anthropic could not be installed for the reason above; its models are not started" in done.stderr


def test_what_is_typed_in_the_panes_finds_csp_after_everything_else(clone: Path, tmp_path: Path) -> None:
    make_venv(clone, 'echo "$PATH"')
    path = tools(tmp_path / "path", tmux="")
    command = [str(clone / "bin" / "start-llm-groupchat.sh")]
    env = {"PATH": str(path), "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert done.stdout == f"{path}:{clone}/bin\n"
