"""A server in front of an API server that claims another version: `/version` says so; whatever else is read is passed on.

It stands in for a control plane of that version where only the claim matters: what a preflight reads. It passes on nothing that writes.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.plane import Plane
from tests.e2e.upstream import self_signed


@contextmanager
def claiming(plane: Plane, version: str, folder: Path) -> Iterator[Path]:
    """A kubeconfig for `plane` by way of a server that says it is `version` ("1.33.7")."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(folder, ["localhost"]))
    handler = type("Handler", (_Handler,), {"plane": plane, "version": version})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        config = folder / "kubeconfig"
        url = f"https://127.0.0.1:{server.server_address[1]}"
        config.write_text(plane.kubeconfig.read_text().replace(plane.url, url))
        yield config
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plane: Plane
    version: str

    def do_GET(self) -> None:
        where = urlsplit(self.plane.url)
        assert where.hostname
        behind = http.client.HTTPSConnection(
            where.hostname, where.port, timeout=30, context=ssl._create_unverified_context()
        )
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding", "connection")}
        behind.request("GET", self.path, headers=headers)
        answer = behind.getresponse()
        data = answer.read()
        behind.close()
        if urlsplit(self.path).path == "/version":
            major, minor, _ = self.version.split(".")
            said = {**json.loads(data), "major": major, "minor": minor, "gitVersion": f"v{self.version}"}
            data = json.dumps(said).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silent."""
