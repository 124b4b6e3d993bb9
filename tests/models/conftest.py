"""What the model tests share: small GGUF files, and a hub on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from urllib.parse import urlsplit

import pytest
from tiny_gguf import make_gguf

from specdec_cli.models.catalog import CatalogModel

COMMIT = "c" * 40


@pytest.fixture(scope="session")
def gguf() -> Callable[..., bytes]:
    return make_gguf


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models directory and an empty hub cache; no test sees the machine's own."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_token")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("SPECDEC_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("specdec_cli.models.transfer.RETRY_SECONDS", (0.0, 0.0))
    return tmp_path / "models"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "hf" / "hub"


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put these models in place of the catalog."""

    def replace(*models: CatalogModel) -> None:
        def these() -> MappingProxyType[str, CatalogModel]:
            return MappingProxyType({model.name: model for model in models})

        for module in ("catalog", "references", "store", "pairing"):
            monkeypatch.setattr(f"specdec_cli.models.{module}.catalog", these)

    return replace


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class FakeHub:
    """Serves repositories as the hub does, and plain files. Faults are set from the test."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)  # "user/repo/file" or "file"
    etags: bool = True
    ranges: bool = True
    status: dict[str, int] = field(default_factory=dict)  # path prefix: status to answer with
    error_code: str = ""  # X-Error-Code header of such an answer
    redirects: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)  # bodies to cut, and after how many bytes
    claimed: dict[str, str] = field(default_factory=dict)  # sha256 to claim in place of the real
    requests: list[Request] = field(default_factory=list)

    def gets(self, part: str) -> list[Request]:
        return [r for r in self.requests if r.method == "GET" and part in r.path]

    def digest(self, name: str) -> str:
        return self.claimed.get(name, sha256(self.files[name]).hexdigest())

    def listing(self, repo: str) -> dict[str, object] | None:
        names = [name for name in self.files if name.startswith(repo + "/")]
        siblings = [
            {
                "rfilename": name.removeprefix(repo + "/"),
                "size": len(self.files[name]),
                "blobId": "b" * 40,
                "lfs": {
                    "sha256": self.digest(name),
                    "size": len(self.files[name]),
                    "pointerSize": 130,
                },
            }
            for name in names
        ]
        tags = ["gguf", "license:apache-2.0"]
        return {"id": repo, "sha": COMMIT, "tags": tags, "siblings": siblings} if names else None


class Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(Request(self.command, self.path, dict(self.headers)))
        for prefix, status in self.hub.status.items():
            if path.startswith(prefix):
                return self.refuse(status)
        if target := self.hub.redirects.get(path):
            self.send_response(302)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if path.startswith("/api/models/"):
            user, repo, *_ = path.removeprefix("/api/models/").split("/")
            listing = self.hub.listing(f"{user}/{repo}")
            return self.refuse(404) if listing is None else self.send(json.dumps(listing).encode())
        name = path.lstrip("/").replace(f"/resolve/{COMMIT}/", "/").replace("/resolve/main/", "/")
        if name not in self.hub.files:
            return self.refuse(404)
        return self.send_file(name, body)

    def send_file(self, name: str, body: bool) -> None:
        data, etag = self.hub.files[name], f'"{self.hub.digest(name)}"'
        wanted = self.headers.get("Range", "")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        partial = self.hub.ranges and wanted and self.headers.get("If-Range", etag) == etag
        if partial and start >= len(data):
            return self.refuse(416)
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            start = 0
        if self.hub.etags:
            self.send_header("ETag", etag)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("X-Linked-Etag", etag)
        self.send_header("X-Linked-Size", str(len(data)))
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if body:
            end = start + self.hub.cuts.pop(0) if self.hub.cuts else len(data)
            self.wfile.write(data[start:end])

    def send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status: int) -> None:
        self.send_response(status)
        if self.hub.error_code:
            self.send_header("X-Error-Code", self.hub.error_code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    fake = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": fake}))
    fake.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", fake.address)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield fake
    server.shutdown()
    server.server_close()
    thread.join()
