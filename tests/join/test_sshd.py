"""The tests of joined rooms bring their own sshd."""

import re
from pathlib import Path

from tests.join.sshd import Sshd

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_set_up_installs_no_server() -> None:
    script = (ROOT / "bin" / "test").read_text()
    table = re.search(r"^PACKAGES='\n(.*?)^'", script, re.DOTALL | re.MULTILINE)

    assert table and "openssh" in table[1] and "server" not in table[1]


def test_an_unpacked_sshd_knows_its_libraries_and_programs(tmp_path: Path) -> None:
    for path in ("usr/sbin/sshd", "usr/lib/x86_64-linux-gnu/libwrap.so.0", "usr/lib/openssh/sshd-session"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    sshd = Sshd.unpacked(tmp_path)

    assert sshd and sshd.program == tmp_path / "usr/sbin/sshd"
    assert sshd.env == (f"LD_LIBRARY_PATH={tmp_path}/usr/lib/x86_64-linux-gnu",)
    assert sshd.config == f"SshdSessionPath {tmp_path}/usr/lib/openssh/sshd-session\n"
    assert Sshd.unpacked(tmp_path / "usr") is None
