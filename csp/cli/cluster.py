"""Print the files for a cluster of NATS servers and gateways, and make its keys."""

import shutil
import sys
from pathlib import Path
from typing import Final

from csp.cli.arguments import WHOLE, Forms, read_as, takes, value
from csp.cli.output import put, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, Refused
from csp.setting_types import PORT, ROOM, read_text

_FORMS: Final = Forms("cluster", default="config")
_HOSTS: Final = "nats1.example,nats2.example,nats3.example"
_FOLDER: Final = "/etc/nats"
_GATEWAY_FOLDER: Final = "/etc/csp"
_STORE: Final = "/var/lib/nats"
_GATEWAY_PORT: Final = 8765
_KINDS: Final = ("nats", "systemd", "compose")


@takes(
    value(
        "form",
        "FORM",
        "config nats, config systemd or config compose: print a file; "
        "key FILE: make the gateways' key for the servers and print its public half; "
        "secret FILE: make the secret that the gateways share; "
        "token ROOM: print the token of a room, from the secret",
        nargs="*",
    ),
    value("--hosts", "A,B,C", f"hosts of the NATS servers, each as HOST or HOST:PORT; default: {_HOSTS}"),
    value("--number", "N", "with config nats: which of the hosts the file is for; default: 1", type=WHOLE),
    value("--key", "KEY", "with config nats: public half of the gateways' key, as csp cluster key prints it"),
    value(
        "--folder",
        "DIR",
        "folder of the certificates, and of the gateways' secrets; "
        f"default: {_FOLDER} for a server, {_GATEWAY_FOLDER} for a gateway",
    ),
    value("--store", "DIR", f"with config nats: folder for the server's data; default: {_STORE}"),
    value("--secret-file", "FILE", "with token: the secret that the gateways share"),
    value(
        "--gateway-port",
        "N",
        f"with config systemd or compose: port of the gateway; default: {_GATEWAY_PORT}",
        type=read_as(PORT),
    ),
    examples=(
        "csp cluster key gateway.nk",
        "csp cluster secret secret",
        "csp cluster token review --secret-file secret",
        "csp cluster config nats --hosts n1.lan,n2.lan,n3.lan --number 2 --key U... > nats.conf",
        "csp cluster config systemd --hosts n1.lan,n2.lan,n3.lan --room review > csp-review.service",
        "csp cluster config compose --hosts nats1,nats2,nats3 --room review > compose.yaml",
    ),
)
def cluster(call: VerbCall) -> int:
    """Run the form named by the first word."""
    return _FORMS.do(call)


@_FORMS.form("config", 1, ("hosts", "number", "key", "folder", "store", "gateway_port"))
def _config(call: VerbCall, words: list[str]) -> int:
    from csp.cluster.config_files import (
        check_key,
        check_path,
        compose_file,
        nats_config,
        read_hosts,
        systemd_unit,
    )

    kind, args = (words or [""])[0], call.args
    if kind not in _KINDS:
        raise BadInput(f"expected one of {', '.join(_KINDS)}, got {kind!r}", "csp cluster config nats")
    _check_options(call, kind)
    hosts = read_hosts(args.hosts or _HOSTS)
    room, port = call.settings.room, args.gateway_port or _GATEWAY_PORT
    if kind == "nats":
        number = args.number or 1
        if number > len(hosts):
            raise BadInput(f"--number: there are {len(hosts)} hosts, got {number}")
        if not args.key:
            raise BadInput(
                "expected --key with the gateways' public key", "make it with: csp cluster key FILE"
            )
        folder, store = check_path(args.folder or _FOLDER), check_path(args.store or _STORE)
        text = nats_config(hosts, number, key=check_key(args.key), folder=folder, store=store)
    elif kind == "systemd":
        folder = check_path(args.folder or _GATEWAY_FOLDER)
        # The csp command of this installation.
        beside = Path(sys.executable).parent / "csp"
        csp = beside if beside.exists() else Path(shutil.which("csp") or "/usr/local/bin/csp")
        text = systemd_unit(hosts, room=room, port=port, folder=folder, csp=csp)
    else:
        text = compose_file(hosts, room=room, port=port)
    put(text.rstrip("\n"))
    return 0


def _check_options(call: VerbCall, kind: str) -> None:
    of_kind = {"nats": ("number", "key", "folder", "store"), "systemd": ("folder", "gateway_port")}
    others = {"number", "key", "folder", "store", "gateway_port"} - set(of_kind.get(kind, ("gateway_port",)))
    for option in sorted(others):
        if getattr(call.args, option) is not None:
            name = option.replace("_", "-")
            raise BadInput(f"csp cluster config {kind} does not accept --{name}", "see: csp cluster --help")


@_FORMS.form("key", 1)
def _key(call: VerbCall, words: list[str]) -> int:
    from csp.cluster.keys import new_key

    path = _new_file(call, words)
    public, seed = new_key()
    _write_new(path, f"{seed}\n".encode())
    put(public)
    talk(f"wrote the private half to {path}; give it to the gateways with CSP_NATS_CREDS")
    return 0


@_FORMS.form("secret", 1)
def _secret(call: VerbCall, words: list[str]) -> int:
    import secrets

    path = _new_file(call, words)
    _write_new(path, f"{secrets.token_urlsafe(32)}\n".encode())
    talk(f"wrote {path}; every gateway of the cluster needs the same file")
    return 0


@_FORMS.form("token", 1, ("secret_file",))
def _token(call: VerbCall, words: list[str]) -> int:
    from csp.cluster.node import read_secret, room_key
    from csp.gateway.auth import TokenStore  # loads aiohttp

    if not words:
        raise BadInput("expected the name of a room", "csp cluster token ROOM --secret-file FILE")
    secret = read_secret(call.settings.secret_file)
    put(TokenStore(room_key(secret, read_text(ROOM, words[0], "ROOM"))).room_token)
    return 0


def _new_file(call: VerbCall, words: list[str]) -> Path:
    if not words:
        raise BadInput("expected the file to write", f"csp cluster {call.args.form[0]} FILE")
    return call.cwd / words[0]


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that only the user may read; never replace one, because others may depend on it."""
    from csp.fast_start.atomic_files import create_private, write_all

    try:
        fd = create_private(path)
    except FileExistsError as exc:
        raise Refused(f"{str(path)!r} exists already", "choose another name") from exc
    with open(fd, "wb") as file:
        write_all(file.fileno(), data, 0)
