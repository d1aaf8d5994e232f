"""Argo CD on a cluster of the tests: application controller, repository server and Redis, as processes on loopback.

The two are built once from Argo CD's module, which `go.mod` pins; Redis is the machine's own.

    python -m tests.e2e.argocd.controllers    builds what is missing and prints where the programs are
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compiler.yamlio import load_all
from tests.e2e.api import Object
from tests.e2e.binaries import MissingError, of_module
from tests.e2e.cluster import Cluster
from tests.e2e.plane import die_with_parent, free_ports
from tests.e2e.simulator import CRDS

MODULE = Path(__file__).resolve().parent
NAMESPACE = "argocd"
API = "/apis/argoproj.io/v1alpha1"
APPLICATIONS = f"{API}/namespaces/{NAMESPACE}/applications"
AGENT = "argocd-application-controller"


def programs(*, build: bool = True) -> dict[str, Path]:
    """Where `argocd` and `redis-server` are. MissingError: this machine has no Redis, or cannot build Argo CD."""
    redis = shutil.which("redis-server") or shutil.which("valkey-server")
    if redis is None:
        raise MissingError("no redis-server (Debian, Ubuntu: apt-get install redis-server)")
    built = of_module(MODULE, {"argocd": "."}, "github.com/argoproj/argo-cd/v3", build=build)
    return {**built, "redis-server": Path(redis)}


class ArgoCD:
    """A running Argo CD."""

    def __init__(self, made: Cluster) -> None:
        self.made = made
        self.folder = made.folder / "argocd"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Installed, up and answering, or RuntimeError with the end of the log."""
        self._install()
        found = programs(build=False)
        for name in ("bin", "home", "tmp", "tls", "none"):
            (self.folder / name).mkdir(parents=True)
        # It asks this script of its image about each commit, also when it wants no signature: there is none to tell of.
        script = self.folder / "bin" / "git-verify-wrapper.sh"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        repository = self.made.repository
        assert repository is not None
        shutil.copy(self.made.certificate, self.folder / "tls" / repository.host)
        redis, grpc, health, metrics = free_ports(4)
        database = ["--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._run("redis", [str(found["redis-server"]), *database])
        common = [f"--redis=127.0.0.1:{redis}", "--loglevel=info", "--logformat=text"]
        self._run(
            "repo-server",
            [
                str(found["argocd"]), "repo-server", "--address=127.0.0.1", f"--port={grpc}",
                "--metrics-address=127.0.0.1", f"--metrics-port={health}", "--disable-tls", "--client-ca-path=", *common,
            ],
        )  # fmt: skip
        self._wait("repo-server", health)
        self._run(
            "application-controller",
            [
                str(found["argocd"]), "application-controller", f"--repo-server=127.0.0.1:{grpc}",
                "--repo-server-plaintext", f"--metrics-port={metrics}", f"--namespace={NAMESPACE}",
                # Each self-heal of an Application waits longer than the one before, five minutes in the end.
                "--self-heal-backoff-cap-seconds=15", *common,
            ],
        )  # fmt: skip
        self._wait("application-controller", metrics)

    def stop(self) -> None:
        """Ends what was started here, and nothing else."""
        for process in reversed(self._processes.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self._processes.clear()
        # The repository server takes all rights off its folders; who is not root could not remove them.
        for folder, names, _ in os.walk(self.folder / "tmp"):
            for name in names:
                (Path(folder) / name).chmod(0o700)

    def apply_root(self) -> None:
        """What a person does: `kubectl apply` of the root."""
        self.made.kubectl("apply", "--filename", str(self.made.path / "argocd" / "root.yaml"))

    def applications(self) -> dict[str, Object]:
        """The Applications, by the name of what they hold: `root`, `namespaces`, a component."""
        prefix = self.made.bundle.plan.settings.prefix
        return {a["metadata"]["name"].removeprefix(f"{prefix}-"): a for a in self.made.api.list(APPLICATIONS)}

    def refresh(self) -> None:
        """What a webhook of the Git server does: every Application is compared with what is in Git now."""
        for item in self.made.api.list(APPLICATIONS):
            self.made.api.merge(
                f"{APPLICATIONS}/{item['metadata']['name']}",
                {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}},
            )

    def wait(self, done: Callable[[dict[str, Object]], bool], seconds: float, what: str) -> dict[str, Object]:
        """The Applications once `done` holds; AssertionError with the state of each after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.applications()
            if done(found):
                return found
            ended = [name for name, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                told = "\n".join(f"  {name}: {describe(item)}" for name, item in sorted(found.items()))
                raise AssertionError(
                    f"{', '.join(ended)} ended" if ended else f"{what}: not within {seconds} s\n{told}"
                )
            time.sleep(0.5)

    def hold(self, holds: Callable[[dict[str, Object]], bool], seconds: float, what: str) -> None:
        """AssertionError when `holds` does not hold at any moment of the next `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.applications()
            assert holds(found), f"{what}: not any more\n{_table(found)}"
            time.sleep(0.5)

    def converged(self, found: dict[str, Object]) -> bool:
        """Whether every Application of the bundle is there, synced to the newest commit, and healthy."""
        plan = self.made.bundle.plan
        names = {"root", "namespaces", *(c.name for c in plan.components)}
        assert self.made.repository is not None
        head = self.made.repository.head()
        return set(found) >= names and all(synced(found[name], head) for name in names)

    def _install(self) -> None:
        made = self.made
        for kind in ("applications", "appprojects", "applicationsets"):
            (document,) = load_all((made.crds / f"{kind}.argoproj.io.yaml").read_text(), kind, strict=False)
            crd = dict(document.data)
            crd.pop("status", None)
            made.api.create(CRDS, crd)
        made.api.create("/api/v1/namespaces", _item("v1", "Namespace", NAMESPACE))
        part_of = {"app.kubernetes.io/part-of": "argocd"}
        settings: dict[str, dict[str, str]] = {
            # What it would be told by webhooks it finds by itself after a while; people wait three minutes for that.
            "argocd-cm": {"timeout.reconciliation": "10s", "timeout.reconciliation.jitter": "0s"},
            "argocd-rbac-cm": {},
            "argocd-tls-certs-cm": {},
            "argocd-ssh-known-hosts-cm": {},
            "argocd-gpg-keys-cm": {},
        }
        for name, data in settings.items():
            item = _item("v1", "ConfigMap", name, part_of)
            made.api.create(f"/api/v1/namespaces/{NAMESPACE}/configmaps", {**item, "data": data})
        secret = _item("v1", "Secret", "argocd-secret", part_of)
        secret["stringData"] = {"server.secretkey": secrets.token_hex(16)}
        made.api.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
        anything = [{"group": "*", "kind": "*"}]
        project = _item("argoproj.io/v1alpha1", "AppProject", "default")
        project["spec"] = {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": anything,
        }
        deadline = time.monotonic() + 30
        while not made.plane.get(f"{API}/namespaces/{NAMESPACE}/appprojects"):
            assert time.monotonic() < deadline, "AppProjects are not served"
            time.sleep(0.2)
        made.api.create(f"{API}/namespaces/{NAMESPACE}/appprojects", project)

    def _env(self) -> dict[str, str]:
        folder, none = self.folder, str(self.folder / "none")
        env = self.made.env()
        return self.made.env(
            PATH=f"{folder / 'bin'}:{env['PATH']}",
            HOME=str(folder / "home"),
            TMPDIR=str(folder / "tmp"),
            ARGOCD_FAKE_IN_CLUSTER="true",
            ARGOCD_GPG_ENABLED="false",
            ARGOCD_TLS_DATA_PATH=str(folder / "tls"),
            ARGOCD_SSH_DATA_PATH=none,
            ARGOCD_PLUGINSOCKFILEPATH=none,
            ARGOCD_ASK_PASS_SOCK=str(folder / "ask.sock"),
            ARGOCD_RECONCILIATION_TIMEOUT="10s",
            ARGOCD_RECONCILIATION_JITTER="0s",
        )

    def _run(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=self._env(),
                start_new_session=True, preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    def _wait(self, name: str, port: int) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                    return
            except OSError:
                if self._processes[name].poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{name} is not up: {(self.folder / f'{name}.log').read_text()[-1500:]}"
                    ) from None
            time.sleep(0.2)


def synced(application: Object, head: str) -> bool:
    """Whether an Application is Synced to this commit and Healthy, and its last operation succeeded."""
    status = application.get("status") or {}
    sync, operation = status.get("sync") or {}, status.get("operationState") or {}
    revisions = sync.get("revisions") or [sync.get("revision")]
    return (
        sync.get("status") == "Synced"
        and (status.get("health") or {}).get("status") == "Healthy"
        and operation.get("phase") == "Succeeded"
        and head in revisions
    )


def phase(found: dict[str, Object], name: str) -> str:
    """The phase of an Application's last operation; empty when there was none."""
    return str(((found.get(name, {}).get("status") or {}).get("operationState") or {}).get("phase", ""))


def _table(found: dict[str, Object]) -> str:
    return "\n".join(f"  {name}: {describe(item)}" for name, item in sorted(found.items()))


def describe(application: Object) -> str:
    """What an Application tells of itself, in a line."""
    status = application.get("status") or {}
    operation = status.get("operationState") or {}
    words = [
        str((status.get("sync") or {}).get("status")),
        str((status.get("health") or {}).get("status")),
        f"{operation.get('phase')} (retry {operation.get('retryCount', 0)}): {operation.get('message', '')}",
        *(c.get("message", "") for c in status.get("conditions") or []),
    ]
    return ", ".join(words)[:600]


@contextmanager
def argocd(made: Cluster) -> Iterator[ArgoCD]:
    """Argo CD on a cluster whose bundle lies in a repository."""
    running = ArgoCD(made)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def _item(version: str, kind: str, name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **({"labels": labels} if labels else {})}
    if kind != "Namespace":
        metadata["namespace"] = NAMESPACE
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


if __name__ == "__main__":
    try:
        print(json.dumps({name: str(path) for name, path in programs().items()}, indent=2))
    except MissingError as missing:
        sys.exit(f"e2e: {missing}")
