"""Runs the model server by itself: `python -m tests.models --port 0`."""

import argparse
import json
import socket
import sys

from tests.models.rules import Rule, Text
from tests.models.server import ModelServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--say", action="append", default=[], metavar="REGEX=TEXT")
    options = parser.parse_args()
    rules = [
        Rule(match=match, reply=[Text(text=text)])
        for match, _, text in (rule.partition("=") for rule in options.say)
    ]
    with ModelServer(rules, listener=socket.create_server(("127.0.0.1", options.port))) as server:
        print(json.dumps({"port": server.port, "url": server.url("claude")}), flush=True)
        for _ in sys.stdin:
            for exchange in server.exchanges():
                print(exchange.number, exchange.client, exchange.ask.kind, exchange.ask.texts, exchange.reply)


if __name__ == "__main__":
    main()
