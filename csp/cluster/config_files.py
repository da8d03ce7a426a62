"""Write the configuration files of a cluster: for servers, for gateways, and for both in containers."""

import base64
import binascii
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from csp.cluster.servers import PORT
from csp.errors import BadInput
from csp.setting_types import is_loopback

#: The offsets from a server's port to its port for the other servers and to its monitoring port.
ROUTES_ABOVE: Final = 2000
MONITOR_ABOVE: Final = 4000
_PUBLIC_KEY: Final = re.compile(r"U[A-Z2-7]{55}")
#: Text that needs no quotes in any of the files.
_PLAIN: Final = re.compile(r"[\w./@%+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServerHost:
    """The address of one of the servers, as seen by the others."""

    name: str
    port: int = PORT

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the host of `HOST` or `HOST:PORT`."""
        try:
            found = urlsplit(f"//{text}")
            name, port = found.hostname or "", found.port if found.port is not None else PORT
        except ValueError:
            name, port = "", 0
        if (
            not name
            or not port
            or found.netloc != text
            or found.username is not None
            or not _PLAIN.fullmatch(name)
        ):
            raise BadInput(f"expected a host such as nats1.example or nats1.example:4222, got {text!r}")
        if port + MONITOR_ABOVE > 65535:
            raise BadInput(
                f"port {port} is too high", f"port + {MONITOR_ABOVE} is used for the server's state"
            )
        return cls(name, port)


def read_hosts(text: str) -> tuple[ServerHost, ...]:
    """Return the hosts in a comma-separated list; their number must be odd, so that a majority can decide."""
    hosts = tuple(ServerHost.read(part.strip()) for part in text.split(","))
    if len(hosts) % 2 == 0 or len(set(hosts)) < len(hosts):
        raise BadInput(f"expected one, three or five different hosts, got {text!r}")
    return hosts


def check_key(text: str) -> str:
    """Return the public NKey of a user; raise BadInput if it is something else."""
    if not _PUBLIC_KEY.fullmatch(text) or not _has_valid_checksum(text):
        hint = "make a key with: csp cluster key FILE"
        raise BadInput(f"expected the public key of a user, U and 55 more characters, got {text!r}", hint)
    return text


def _has_valid_checksum(key: str) -> bool:
    data = base64.b32decode(key)
    return binascii.crc_hqx(data[:-2], 0) == int.from_bytes(data[-2:], "little")


def check_path(text: str) -> str:
    """Return an absolute path that needs no quotes."""
    if not os.path.isabs(text) or not _PLAIN.fullmatch(text):
        raise BadInput(f"expected an absolute path without spaces, got {text!r}")
    return text


def nats_config(hosts: tuple[ServerHost, ...], number: int, *, key: str, folder: str, store: str) -> str:
    """Return the nats.conf of the server `number`, counted from 1."""
    here = hosts[number - 1]
    listen = here.name if is_loopback(here.name) else "0.0.0.0"
    tls = f'cert_file: "{folder}/cert.pem"\n  key_file: "{folder}/key.pem"\n  ca_file: "{folder}/ca.pem"'
    return f"""\
# NATS server {number} of {len(hosts)} of a CSP cluster; nats-server 2.11 or newer.
# Written by: csp cluster config nats
server_name: csp-nats{number}
listen: "{listen}:{here.port}"
# Monitoring, which csp doctor --journal uses.
http: "127.0.0.1:{here.port + MONITOR_ABOVE}"
# Each commit of a room is one message.
max_payload: 8MB

jetstream {{
  store_dir: "{store}"
  # Acknowledged messages survive a power cut; with the default, a sync every two minutes, they would not.
  sync_interval: always
}}

tls {{
  {tls}
}}

# This is the public half of the NKey with which the gateways authenticate.
accounts {{
  CSP: {{ jetstream: enabled, users: [{{ nkey: {key} }}] }}
  SYS: {{ users: [] }}
}}
system_account: SYS
""" + ("" if len(hosts) == 1 else _routes(hosts, here, listen, tls))


def _routes(hosts: tuple[ServerHost, ...], here: ServerHost, listen: str, tls: str) -> str:
    routes = "".join(f'    "tls://{host.name}:{host.port + ROUTES_ABOVE}"\n' for host in hosts)
    return f"""
cluster {{
  name: csp
  listen: "{listen}:{here.port + ROUTES_ABOVE}"
  routes: [
{routes}  ]
  # Only a server with a certificate of the same CA may join.
  tls {{
    {tls.replace(chr(10), chr(10) + "  ")}
    verify: true
  }}
}}
"""


def servers_option(hosts: tuple[ServerHost, ...]) -> str:
    """Return the value of `--journal` for these servers."""
    return ",".join(f"tls://{host.name}:{host.port}" for host in hosts)


def systemd_unit(hosts: tuple[ServerHost, ...], *, room: str, port: int, folder: str, csp: Path) -> str:
    """Return the unit of a gateway; its secrets are files that only root can read."""
    return f"""\
# The gateway of room {room}, one of several: /etc/systemd/system/csp-{room}.service on each machine.
# Written by: csp cluster config systemd
#
# {folder}/secret       the same random line on every machine: csp cluster secret
# {folder}/gateway.nk   the gateways' key for the NATS servers: csp cluster key
# {folder}/gateway.env  CSP_AUTH_TOKEN=... if people should know the room's token
# {folder}/ca.pem, cert.pem, key.pem   the CA of the servers, and this machine's certificate
[Unit]
Description=CSP gateway of room {room}
Wants=network-online.target
After=network-online.target

[Service]
DynamicUser=yes
StateDirectory=csp-{room}
Environment=HOME=%S/csp-{room}
Environment=CSP_NATS_CA={folder}/ca.pem
Environment=CSP_NATS_CREDS=%d/gateway.nk
EnvironmentFile=-{folder}/gateway.env
LoadCredential=secret:{folder}/secret
LoadCredential=gateway.nk:{folder}/gateway.nk
LoadCredential=cert.pem:{folder}/cert.pem
LoadCredential=key.pem:{folder}/key.pem
ExecStart={csp} gateway --room {room} --journal {servers_option(hosts)} \\
    --secret-file %d/secret --history %S/csp-{room}/history --host 0.0.0.0 --port {port} \\
    --tls-cert %d/cert.pem --tls-key %d/key.pem
WorkingDirectory=%S/csp-{room}
Restart=always
RestartSec=1
LimitNOFILE=65536
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""


def compose_file(hosts: tuple[ServerHost, ...], *, room: str, port: int) -> str:
    """Return a compose file with the servers, and as many gateways of one room."""
    numbers = range(1, len(hosts) + 1)
    servers = "".join(_nats_service(number, host) for number, host in zip(numbers, hosts, strict=True))
    names = ", ".join(host.name for host in hosts)
    gateways = "".join(_gateway_service(number, names, room, port + number - 1) for number in numbers)
    volumes = "".join(f"  nats{number}:\n  gateway{number}:\n" for number in numbers)
    return f"""\
# {len(hosts)} NATS servers and {len(hosts)} gateways of room {room}, to try a cluster on one machine.
# Written by: csp cluster config compose
#
# Beside this file: nats1.conf and so on, from csp cluster config nats; a folder tls with ca.pem, cert.pem and
# key.pem, for the names {names}; a folder secrets with secret, gateway.nk and token.
x-gateway: &gateway
  build:
    dockerfile_inline: |
      FROM python:3.13-slim
      RUN pip install --no-cache-dir 'csp-groupchat[nats]'
  restart: always
  environment:
    CSP_NATS_CA: /etc/nats/ca.pem
    CSP_NATS_CREDS: /run/secrets/gateway.nk
  command:
    - sh
    - -c
    - >-
      CSP_AUTH_TOKEN="$$(cat /run/secrets/token)" exec csp gateway --room {room}
      --journal {servers_option(hosts)}
      --secret-file /run/secrets/secret --history /history --host 0.0.0.0 --port 8765
      --tls-cert /etc/nats/cert.pem --tls-key /etc/nats/key.pem
  secrets: [secret, gateway.nk, token]

services:
{servers}{gateways}
volumes:
{volumes}
secrets:
  secret:
    file: ./secrets/secret
  gateway.nk:
    file: ./secrets/gateway.nk
  token:
    file: ./secrets/token
"""


def _nats_service(number: int, host: ServerHost) -> str:
    return f"""\
  nats{number}:
    image: nats:2.14-alpine
    hostname: {host.name}
    command: ["-c", "/etc/nats/nats.conf"]
    restart: always
    volumes:
      - ./nats{number}.conf:/etc/nats/nats.conf:ro
      - ./tls/ca.pem:/etc/nats/ca.pem:ro
      - ./tls/cert.pem:/etc/nats/cert.pem:ro
      - ./tls/key.pem:/etc/nats/key.pem:ro
      - nats{number}:/var/lib/nats
    networks:
      default:
        aliases: [{host.name}]
"""


def _gateway_service(number: int, names: str, room: str, port: int) -> str:
    return f"""\
  gateway{number}:
    <<: *gateway
    # People and agents reach room {room} here; the certificate has to be for that name, and for {names}.
    ports: ["{port}:8765"]
    volumes:
      - ./tls:/etc/nats:ro
      - gateway{number}:/history
"""
