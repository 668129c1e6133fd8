"""A folder goes to the hub in one commit: against a server of the hub's calls on this machine."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import koktok
from koktok.errors import UsageError
from koktok.formats.hub import push_to_hub

huggingface_hub = pytest.importorskip("huggingface_hub")


class Hub(BaseHTTPRequestHandler):
    """The calls that an upload makes; keeps what came."""

    asked: list[tuple[str, bytes]]

    def do_GET(self) -> None:
        self._answer({"sha": "0" * 40, "id": "me/ko", "siblings": []})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, body))
        if self.path.endswith("/create"):
            return self._answer({"url": f"http://{self.headers['Host']}/me/ko", "name": "me/ko", "id": "0"})
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            kept = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]
            return self._answer({"files": kept})
        address = f"http://{self.headers['Host']}/me/ko/commit/{'0' * 40}"
        return self._answer(
            {"commitUrl": address, "commitOid": "0" * 40, "success": True, "errors": [], "warnings": []}
        )

    def _answer(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, bytes]]]:
    Hub.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        real = huggingface_hub.HfApi
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda **options: real(endpoint=address, **options))
        yield Hub.asked
        server.shutdown()


def test_a_folder_arrives_whole(trained: Callable[..., Path], hub: list[tuple[str, bytes]]) -> None:
    folder = trained()
    assert "/me/ko" in push_to_hub(folder, "me/ko", token="hf_none")
    rows = [json.loads(line) for path, body in hub if "/commit/" in path for line in body.splitlines()]
    files = {row["value"]["path"]: row["value"]["content"] for row in rows if row["key"] == "file"}
    assert {name: base64.b64decode(content) for name, content in files.items()} == {
        file.name: file.read_bytes() for file in folder.iterdir()
    }


def test_the_card_is_read_by_the_hub(mini: list[str], tmp_path: Path) -> None:
    card = huggingface_hub.ModelCard.load(koktok.train(mini, vocab_size=2300).save(tmp_path / "made") / "README.md")
    assert (card.data.library_name, card.data.language) == ("koktok", ["ko"])
    assert {"transformers", "tokenizer"} <= {*card.data.tags}


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a folder with a koktok\.toml"):
        push_to_hub(tmp_path, "me/ko")
