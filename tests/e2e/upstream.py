"""The hosts of upstream charts, on loopback: an HTTPS proxy that answers for each of them itself.

Helm is told by `HTTPS_PROXY` and `SSL_CERT_FILE`, so a bundle is applied as it was compiled, with the real addresses in
it. A host that serves no stand-in is refused: nothing leaves this machine.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.charts import StandIn
from tests.e2e.gitserver import Repository

CONFIG = "application/vnd.cncf.helm.config.v1+json"
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Upstream:
    """What the hosts serve: `(host, path) -> (media type, body)`; `environment` is what Helm needs to be sent here."""

    def __init__(self) -> None:
        self.content: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.environment: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.repository: Repository | None = None
        self.certificate = Path()

    def serve(self, charts: list[StandIn]) -> None:
        """Adds charts, to an index (https) or as an artefact of a registry (oci)."""
        indices: dict[str, dict[str, list[object]]] = {}
        for chart in charts:
            where = urlsplit(chart.repository)
            digest = hashlib.sha256(chart.archive).hexdigest()
            if where.scheme == "oci":
                self._push(where.netloc, f"{where.path}/{chart.name}".strip("/"), chart)
                continue
            file = f"{chart.name}-{chart.version}.tgz"
            self.content[where.netloc, f"{where.path}/{file}"] = ("application/gzip", chart.archive)
            entry = {"apiVersion": "v2", "name": chart.name, "version": chart.version, "urls": [file], "digest": digest}
            indices.setdefault(chart.repository, {}).setdefault(chart.name, []).append(entry)
        for repository, entries in indices.items():
            where = urlsplit(repository)
            index = {"apiVersion": "v1", "entries": entries, "generated": "2026-01-01T00:00:00Z"}
            self.content[where.netloc, f"{where.path}/index.yaml"] = ("text/yaml", json.dumps(index).encode())

    def _push(self, host: str, name: str, chart: StandIn) -> None:
        config = json.dumps({"apiVersion": "v2", "name": chart.name, "version": chart.version}).encode()
        described = []
        for kind, blob in ((CONFIG, config), (LAYER, chart.archive)):
            digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
            self.content[host, f"/v2/{name}/blobs/{digest}"] = ("application/octet-stream", blob)
            described.append({"mediaType": kind, "digest": digest, "size": len(blob)})
        content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described[0], "layers": described[1:]}
        manifest = json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        for reference in (chart.version.replace("+", "_"), digest):
            self.content[host, f"/v2/{name}/manifests/{reference}"] = (MANIFEST, manifest)
        tags = json.dumps({"name": name, "tags": [chart.version.replace("+", "_")]}).encode()
        self.content[host, f"/v2/{name}/tags/list"] = ("application/json", tags)
        self.content[host, "/v2/"] = ("application/json", b"{}")


@contextmanager
def served(folder: Path, charts: list[StandIn], repository: Repository | None = None) -> Iterator[Upstream]:
    """The hosts of `charts` and of a Git repository, behind a proxy on a free port of loopback."""
    upstream = Upstream()
    upstream.serve(charts)
    upstream.repository = repository
    hosts = sorted({host for host, _ in upstream.content} | ({repository.host} if repository else set()))
    certificate = upstream.certificate = self_signed(folder, hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["http/1.1"])
    handler = type("Handler", (_Handler,), {"upstream": upstream, "context": context})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    proxy = f"http://127.0.0.1:{server.server_address[1]}"
    upstream.environment = {
        "HTTPS_PROXY": proxy,
        "HTTP_PROXY": proxy,
        "NO_PROXY": "127.0.0.1",
        "SSL_CERT_FILE": str(certificate),
    }
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()


def self_signed(folder: Path, hosts: list[str]) -> Path:
    """A self-signed certificate of these hosts, with its key, in one file: its own authority."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "upstream.pem"
    names = ",".join(f"DNS:{host}" for host in hosts)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=stand-ins"]
    extensions = ["-addext", f"subjectAltName={names}"]
    subprocess.run(
        [*command, *extensions, "-keyout", str(path), "-out", str(folder / "upstream.crt")],
        check=True, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + (folder / "upstream.crt").read_bytes())
    return path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream
    context: ssl.SSLContext

    def do_CONNECT(self) -> None:
        host = self.path.rpartition(":")[0]
        repository = self.upstream.repository
        if not any(host == known for known, _ in self.upstream.content) and not (
            repository and host == repository.host
        ):
            self.send_error(502, f"{host} has no stand-in")
            return
        self.send_response_only(200, "Connection established")
        self.end_headers()
        self.wfile.flush()
        with suppress(OSError):
            self.connection = self.context.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb", -1)
            self.wfile = self.connection.makefile("wb", 0)
            self.close_connection = False
            while not self.close_connection:
                self.handle_one_request()
        self.close_connection = True

    def finish(self) -> None:
        # The server knows the plain socket only, which was handed over.
        with suppress(OSError):
            super().finish()
        self.connection.close()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        path = urlsplit(self.path).path
        self.upstream.requests.append((host, path))
        if self.upstream.repository is not None and host == self.upstream.repository.host:
            self._git(self.upstream.repository)
            return
        found = self.upstream.content.get((host, path))
        if found is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        kind, data = found
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if "/manifests/" in path:
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(data).hexdigest()}")
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _git(self, repository: Repository) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            sent = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                sent += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, content = repository.answer(self.command, self.path, self.headers, sent)
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Silent."""
