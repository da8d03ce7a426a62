"""A stub of a provider's vector stores on loopback, asked by the vendor's own package."""

import asyncio
import time
from typing import Any, Self

from aiohttp import web

from tests.closing import close


class VectorStores:
    """Stores in memory; `fail_with` makes every call answer so, 0 leaves it without an answer."""

    def __init__(self) -> None:
        self.stores: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}
        self.calls: list[str] = []
        self.fail_with: int | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._watched])
        app.router.add_post("/v1/vector_stores", self._create)
        app.router.add_post("/v1/vector_stores/{id}", self._update)
        app.router.add_post("/v1/vector_stores/{id}/search", self._search)
        app.router.add_get("/v1/vector_stores/{id}/files", self._list)
        app.router.add_post("/v1/vector_stores/{id}/files", self._attach)
        app.router.add_delete("/v1/vector_stores/{id}/files/{file}", self._detach)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_delete("/v1/files/{file}", self._delete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await close(self._runner)

    @web.middleware
    async def _watched(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path.removeprefix('/v1')}")
        if self.fail_with == 0:
            await asyncio.Event().wait()
        if self.fail_with:
            headers = {"Retry-After": "0"}
            body = {"error": {"message": "no more", "type": "insufficient_quota"}}
            return web.json_response(body, status=self.fail_with, headers=headers)
        found: web.StreamResponse = await handler(request)
        return found

    def expire(self) -> None:
        for store in self.stores.values():
            store["status"] = "expired"

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        made = {
            "id": f"vs_{len(self.stores) + 1}",
            "object": "vector_store",
            "created_at": int(time.time()),
            "name": body["name"],
            "status": "completed",
            "usage_bytes": 0,
            "file_counts": dict.fromkeys(("in_progress", "completed", "failed", "cancelled", "total"), 0),
            "expires_after": body["expires_after"],
        }
        self.stores[made["id"]] = made | {"files": {}}
        return web.json_response(made)

    async def _update(self, request: web.Request) -> web.Response:
        store = self.stores.get(request.match_info["id"])
        if store is None:
            return web.json_response({"error": {"message": "unknown"}}, status=404)
        store |= await request.json()
        return web.json_response({key: value for key, value in store.items() if key != "files"})

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file: Any = form["file"]
        file_id = f"file_{len(self.texts) + 1}"
        self.texts[file_id] = file.file.read().decode()
        body = {"id": file_id, "object": "file", "bytes": 1, "created_at": 1, "filename": file.filename}
        return web.json_response(body | {"purpose": form["purpose"], "status": "processed"})

    async def _attach(self, request: web.Request) -> web.Response:
        body, store = await request.json(), request.match_info["id"]
        self.stores[store]["files"][body["file_id"]] = body["attributes"]
        return web.json_response(self._file(store, body["file_id"]))

    async def _list(self, request: web.Request) -> web.Response:
        store = request.match_info["id"]
        data = [self._file(store, file) for file in self.stores[store]["files"]]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _detach(self, request: web.Request) -> web.Response:
        file = request.match_info["file"]
        del self.stores[request.match_info["id"]]["files"][file]
        return web.json_response({"id": file, "object": "vector_store.file.deleted", "deleted": True})

    async def _delete(self, request: web.Request) -> web.Response:
        del self.texts[request.match_info["file"]]
        return web.json_response({"id": request.match_info["file"], "object": "file", "deleted": True})

    async def _search(self, request: web.Request) -> web.Response:
        """Find files by how many words they share with the question."""
        asked = set((await request.json())["query"].lower().split())
        found = []
        for file, attributes in self.stores[request.match_info["id"]]["files"].items():
            score = len(asked & set(self.texts[file].lower().split())) / len(asked)
            hit = {"file_id": file, "filename": file, "attributes": attributes, "score": score}
            found.append(hit | {"content": [{"type": "text", "text": self.texts[file]}]})
        found.sort(key=lambda hit: -float(str(hit["score"])))
        return web.json_response(
            {"object": "vector_store.search_results.page", "data": found, "has_more": False}
        )

    def _file(self, store: str, file: str) -> dict[str, Any]:
        shape = {"id": file, "object": "vector_store.file", "created_at": 1, "usage_bytes": 1}
        told = {"vector_store_id": store, "status": "completed", "last_error": None}
        return shape | told | {"attributes": self.stores[store]["files"][file]}
