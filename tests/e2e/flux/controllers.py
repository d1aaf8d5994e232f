"""Flux's own controllers, as processes beside a control plane: source-, kustomize- and helm-controller.

They are built from the modules that go.mod here pins, run without a cluster of their own, and reach chart hosts and the
Git repository through the proxy of `upstream.py`. What they are asked to apply is the bundle, unmodified.
"""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.e2e.api import Object
from tests.e2e.binaries import of_module
from tests.e2e.charts import crd_of
from tests.e2e.cluster import Cluster
from tests.e2e.plane import free_ports
from tests.e2e.simulator import CRDS

MODULE = Path(__file__).resolve().parent
SOURCE, KUSTOMIZE, HELM = "source-controller", "kustomize-controller", "helm-controller"
PACKAGES = {name: f"github.com/fluxcd/{name}" for name in (SOURCE, KUSTOMIZE, HELM)}
NAMESPACE = "flux-system"
REQUEUE = 5
"""Seconds after which a controller looks again at what it waits for; 30 by default, which every edge then costs."""

KUSTOMIZATIONS = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"
HELM_RELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{NAMESPACE}/helmreleases"
GIT_REPOSITORIES = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/gitrepositories"


def programs(*, build: bool = True) -> dict[str, Path]:
    """Where each controller is. MissingError: this machine has none and cannot build them."""
    return of_module(MODULE, PACKAGES, PACKAGES[KUSTOMIZE], build=build)


class Flux:
    """The controllers on a cluster, and what a test asks about the objects that they keep.

    They run as a bundle's README tells: many workers, since a waiting gate holds one, and short waits for dependencies.
    """

    def __init__(self, made: Cluster) -> None:
        self.made = made
        self.prefix = made.bundle.plan.settings.prefix
        assert made.repository is not None
        self.head = made.repository.head()
        self._commands: dict[str, tuple[list[str], str]] = {}

    def start(self) -> None:
        """Flux's CRDs and namespace, then the controllers; returns when they are ready."""
        made = self.made
        crds = sorted(made.crds.glob("*.toolkit.fluxcd.io.yaml"))
        # A kind that no bundle uses, but whose API source-controller asks for.
        made.api.create(CRDS, crd_of(made.crds, "buckets.source.toolkit.fluxcd.io", "Bucket", "Namespaced", ("v1",)))
        made.kubectl("apply", "--server-side", *(word for crd in crds for word in ("-f", str(crd))))
        made.kubectl("wait", "--for=condition=Established", *(word for crd in crds for word in ("-f", str(crd))))
        made.kubectl("create", "namespace", NAMESPACE)
        for name, path in programs(build=False).items():
            health, metrics, storage = free_ports(3)
            command = [
                str(path), f"--health-addr=127.0.0.1:{health}", f"--metrics-addr=127.0.0.1:{metrics}",
                f"--requeue-dependency={REQUEUE}s", "--concurrent=20", "--enable-leader-election=false", "--log-level=info",
            ]  # fmt: skip
            if name == SOURCE:
                (made.folder / "artifacts").mkdir()
                command += [
                    f"--storage-path={made.folder / 'artifacts'}",
                    f"--storage-addr=127.0.0.1:{storage}",
                    f"--storage-adv-addr=127.0.0.1:{storage}",
                ]
            self._commands[name] = (command, f"http://127.0.0.1:{health}/readyz")
            self.run(name)

    def run(self, name: str) -> None:
        """Starts a controller, for the first time or after `end`."""
        command, address = self._commands[name]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.made.folder / "home"),
            "TMPDIR": str(self.made.folder),
            "KUBECONFIG": str(self.made.plane.kubeconfig),
            "RUNTIME_NAMESPACE": NAMESPACE,
            **self.made.environment,
        }
        self.made.plane.run_beside(name, command, env, lambda: _answers(address))

    def end(self, name: str) -> None:
        """SIGKILL to a controller, as when its node dies."""
        self.made.plane.end(name)

    def apply(self) -> None:
        """What a person does once: the source and the root."""
        self.made.kubectl("apply", "-f", str(self.made.path / "flux" / "root.yaml"))

    def commit(self, message: str) -> str:
        """Commits the bundle as it is on disk, and has Flux look at once, as a webhook would; the commit."""
        self.head = self.made.publish(message)
        stamp = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": self.head}}}
        self.made.api.merge(f"{GIT_REPOSITORIES}/{self.prefix}", stamp)
        return self.head

    def kustomization(self, what: str) -> Object | None:
        """The Kustomization of a node, by its name without the prefix."""
        return self.made.api.get(f"{KUSTOMIZATIONS}/{self.prefix}-{what}")

    def pending(self, commit: str) -> list[str]:
        """The nodes that are not ready at a commit, with what they say; none when the whole bundle is there."""
        items = self.made.api.list(KUSTOMIZATIONS)
        names = {item["metadata"]["name"] for item in items}
        wanted = {f"{self.prefix}-{r.id}" for r in self.made.bundle.plan.releases}
        return [f"{name}: not there" for name in sorted(wanted - names)] + [
            f"{item['metadata']['name']}: {ready(item).get('reason')}: {ready(item).get('message', '')[:300]}"
            for item in items
            if not is_ready(item, commit)
        ]

    def converge(self, commit: str, *, seconds: float) -> float:
        """Waits until every node is ready at a commit; the seconds it took. AssertionError with what is not."""
        return wait_for(lambda: not self.pending(commit), seconds, lambda: self.pending(commit))


def ready(item: Object) -> Object:
    """The condition Ready of an object of Flux; empty when it has none."""
    conditions: Iterable[Object] = (item.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == "Ready"), {})


def is_ready(item: Object, commit: str) -> bool:
    """Whether a Kustomization is ready at this commit."""
    status = item.get("status") or {}
    return (
        ready(item).get("status") == "True"
        and status.get("observedGeneration") == item["metadata"]["generation"]
        and str(status.get("lastAppliedRevision", "")).endswith(commit)
    )


def wait_for(holds: Callable[[], object], seconds: float, tell: Callable[[], Any] = lambda: "") -> float:
    """Waits until `holds`; the seconds it took. AssertionError with what `tell` says after `seconds`."""
    started = time.monotonic()
    while not holds():
        took = time.monotonic() - started
        assert took < seconds, f"not within {seconds} s: {tell()}"
        time.sleep(0.5)
    return time.monotonic() - started


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False
