"""A chat room as FastAPI's tutorial writes it: a list of connections, one send for each."""

import sys

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from pydantic import BaseModel

from tests.bench.machine.plans import MARK

app = FastAPI()
connections: list[WebSocket] = []
# An event is as long as one of ours, with the mark that watchers count.
_REST = "," + MARK.decode() + "0" * 110 + '"}'


class Message(BaseModel):
    """What a participant sends."""

    to: str
    content: str


async def broadcast(message: Message) -> None:
    """Send a message to everybody, one after the other."""
    text = message.model_dump_json()[:-1] + _REST
    for connection in connections:
        await connection.send_text(text)


@app.post("/message")
async def post_message(message: Message) -> dict[str, bool]:
    """Take a message."""
    await broadcast(message)
    return {"success": True}


@app.websocket("/ws")
async def watch(connection: WebSocket) -> None:
    """Keep a watcher; what it says goes to everybody."""
    await connection.accept()
    connections.append(connection)
    try:
        while True:
            await broadcast(Message.model_validate_json(await connection.receive_text()))
    except WebSocketDisconnect:
        connections.remove(connection)


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
