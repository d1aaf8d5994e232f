"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager, an audit log; no kubelet, no scheduler.

Everything it writes lies in one folder, and it ends only processes that it started: they die with this process, too.
"""

from __future__ import annotations

import ctypes
import json
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.binaries import programs

# Writes are recorded; of what gates look at, with what was written. Requests that change nothing are not witnesses.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "", "resources": ["events"]}]},
        {"level": "None", "resources": [{"group": "events.k8s.io"}, {"group": "authorization.k8s.io"}]},
        {
            "level": "Request",
            "resources": [
                {"group": "", "resources": ["secrets", "configmaps", "namespaces", "nodes"]},
                {"group": "apps", "resources": ["*/status", "deployments", "daemonsets", "statefulsets"]},
                {"group": "apiextensions.k8s.io", "resources": ["customresourcedefinitions/status"]},
                {"group": "discovery.k8s.io"},
                {"group": "mellanox.com"},
                {"group": "nvidia.com"},
                {"group": "nodewright.nvidia.com"},
                {"group": "sriovnetwork.openshift.io"},
            ],
        },
        {"level": "Metadata"},
    ],
}
CONTROLLERS = [
    "*",
    # Nobody renews leases of the nodes here, and there is nothing to attach, to sign or to balance.
    "-node-lifecycle-controller",
    "-node-ipam-controller",
    "-persistentvolume-attach-detach-controller",
    "-persistentvolume-binder-controller",
    "-persistentvolume-expander-controller",
    "-certificatesigningrequest-signing-controller",
    "-certificatesigningrequest-approving-controller",
    "-certificatesigningrequest-cleaner-controller",
    "-horizontal-pod-autoscaler-controller",
    "-cloud-node-lifecycle-controller",
    "-service-lb-controller",
    "-node-route-controller",
]


class Plane:
    """A running control plane; `kubeconfig` has the contexts `e2e` (administrator) and `nobody` (no rights)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.audit_log = folder / "audit.log"
        self.url = ""
        self.token = secrets.token_hex(16)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self._environments: dict[str, dict[str, str]] = {}

    def start(self, *, controllers: bool = True) -> None:
        """Up and answering, or RuntimeError with the end of the log."""
        binaries = programs(build=False)
        port, etcd_port, peer_port, manager_port = free_ports(4)
        self.url = f"https://127.0.0.1:{port}"
        self._write_files()
        folder = self.folder
        etcd = f"http://127.0.0.1:{etcd_port}"
        peer = f"http://127.0.0.1:{peer_port}"
        self._commands["etcd"] = [
            str(binaries["etcd"]), f"--data-dir={folder / 'etcd'}", "--log-level=error",
            f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            *_if_known(binaries["etcd"], "--unsafe-no-fsync"),
        ]  # fmt: skip
        self._commands["kube-apiserver"] = [
            str(binaries["kube-apiserver"]), f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder / 'certs'}",
            "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
            f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'sa.pub'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            f"--audit-policy-file={folder / 'audit-policy.json'}", f"--audit-log-path={self.audit_log}",
            "--audit-log-mode=blocking", "--audit-log-maxsize=4000", "--profiling=false", "--request-timeout=30s",
        ]  # fmt: skip
        self._commands["kube-controller-manager"] = [
            str(binaries["kube-controller-manager"]), f"--kubeconfig={folder / 'manager.kubeconfig'}",
            "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={manager_port}",
            f"--cert-dir={folder / 'certs-manager'}", f"--service-account-private-key-file={folder / 'sa.key'}",
            "--use-service-account-credentials=false", f"--controllers={','.join(CONTROLLERS)}",
            "--concurrent-gc-syncs=5", "--kube-api-qps=200", "--kube-api-burst=400",
        ]  # fmt: skip
        self._run("etcd")
        self._run("kube-apiserver")
        self._wait("kube-apiserver", lambda: self.get("/readyz") == b"ok")
        if not controllers:
            return
        self._run("kube-controller-manager")
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("kube-controller-manager", lambda: bool(self.get(account)))

    def get(self, path: str) -> bytes:
        """Body of a GET; empty when the server does not answer 200."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=5, context=_UNVERIFIED) as response:
                return bytes(response.read())
        except (OSError, urllib.error.HTTPError):
            return b""

    def restart_apiserver(self, *, down: float = 2.0) -> None:
        """The API server is killed, and starts again after `down` seconds."""
        self._end("kube-apiserver", signal.SIGKILL)
        time.sleep(down)
        self._run("kube-apiserver")
        self._wait("kube-apiserver", lambda: self.get("/readyz") == b"ok")

    def run_beside(self, name: str, command: list[str], env: dict[str, str], ready: Callable[[], bool]) -> None:
        """Starts a program that ends with the control plane, at the latest; its log is `<name>.log`.

        Returns when `ready`; RuntimeError with the end of the log when it ends before, or takes longer than 90 s.
        """
        self._commands[name], self._environments[name] = command, env
        self._run(name)
        self._wait(name, ready)

    def end(self, name: str) -> None:
        """SIGKILL to a program that was started here."""
        self._end(name, signal.SIGKILL)

    def stop(self) -> None:
        """Ends what was started here, and nothing else."""
        for name in reversed(list(self._processes)):
            self._end(name, signal.SIGKILL)

    def audit(self) -> list[dict[str, Any]]:
        """Events of the audit log in order of completion; dry runs and refused requests left out."""
        events = []
        for line in self.audit_log.read_text().splitlines():
            try:
                event = json.loads(line)
            except ValueError:  # the server was killed in the middle of a line
                continue
            done = event["stage"] == "ResponseComplete" and event.get("responseStatus", {}).get("code", 500) < 300
            if done and "dryRun" not in event["requestURI"]:
                events.append(event)
        return events

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = ["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"]
        public = ["openssl", "rsa", "-in", str(self.folder / "sa.key"), "-pubout", "-out", str(self.folder / "sa.pub")]
        for command in (key, public):
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        nobody = secrets.token_hex(16)
        manager = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(
            f'{self.token},e2e,e2e,"system:masters"\n{nobody},nobody,nobody\n'
            f'{manager},system:kube-controller-manager,kcm,"system:masters"\n'
        )
        (self.folder / "audit-policy.json").write_text(json.dumps(AUDIT))
        self.kubeconfig.write_text(json.dumps(_kubeconfig(self.url, {"e2e": self.token, "nobody": nobody})))
        (self.folder / "manager.kubeconfig").write_text(json.dumps(_kubeconfig(self.url, {"manager": manager})))

    def _run(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._commands[name],
                env=self._environments.get(name),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True, preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    def _wait(self, name: str, ready: Callable[[], bool], seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            ended = [n for n, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                log = (self.folder / f"{ended[0] if ended else name}.log").read_text()[-1500:]
                self.stop()
                raise RuntimeError(f"{ended[0] + ' ended' if ended else name + ' is not ready'}: {log}")
            time.sleep(0.1)

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._processes.pop(name)
        if process.poll() is None:
            process.send_signal(how)
        process.wait()


@contextmanager
def control_plane(folder: Path, *, controllers: bool = True) -> Iterator[Plane]:
    """A control plane that keeps its files in `folder`; without controllers it only admits and stores."""
    plane = Plane(folder)
    try:
        plane.start(controllers=controllers)
        yield plane
    finally:
        plane.stop()


_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE


def _kubeconfig(url: str, tokens: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [{"name": name, "context": {"cluster": "e2e", "user": name}} for name in tokens],
        "current-context": next(iter(tokens)),
    }


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _if_known(program: Path, flag: str) -> list[str]:
    shown = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=False)
    return [flag] if flag in shown.stdout + shown.stderr else []


def die_with_parent() -> None:
    """For `preexec_fn`: the process ends with the one that started it. Linux only."""
    # Also when the tests are killed, nothing stays behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
