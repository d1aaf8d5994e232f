"""A cluster with a bundle in front of it: control plane, simulator, upstream charts, and the programs that deploy."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from compiler.model import Flags
from compiler.pipeline import Compiled, compile_bundle, read_catalog, write_bundle
from tests.e2e import upstream as upstream_of
from tests.e2e.api import Api
from tests.e2e.charts import StandIn, crd_of, stand_ins
from tests.e2e.gitserver import Repository
from tests.e2e.plane import Plane, control_plane
from tests.e2e.simulator import CRDS, DEVICE, Simulator, add_nodes, node
from tests.e2e.witness import Witness

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools" / "bin"
NVKE = "gb200-nvke-ubuntu-training"
GKE = "gb200-gke-cos-training-bundle-installer"

GKE_LABELS = {
    "cloud.google.com/gke-accelerator": "nvidia-gb200",
    "cloud.google.com/gke-gpu": "true",
    "gke-no-default-nvidia-gpu-device-plugin": "true",
    "nvidia.com/gpu.present": "true",
}
NVKE_LABELS = {
    DEVICE: "true",
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "nvidia.com/gpu.present": "true",
}


@dataclass(frozen=True)
class Run:
    """A finished program."""

    status: int
    output: str
    seconds: float

    def expect(self, status: int, *texts: str) -> Run:
        """Itself, when it ended so and said this; AssertionError with the end of its output otherwise."""
        assert self.status == status, f"exit status {self.status}, wanted {status}:\n{self.output[-4000:]}"
        for text in texts:
            assert text in self.output, f"not said: {text!r}\n{self.output[-4000:]}"
        return self


class Cluster:
    """One bundle, on disk below `folder`, and a cluster to put it on."""

    def __init__(
        self, folder: Path, plane: Plane, bundle: Compiled, charts: list[StandIn], crds: Path, helm: str
    ) -> None:
        self.folder, self.plane, self.bundle, self.crds = folder, plane, bundle, crds
        self.charts = {(c.repository, c.name): c for c in charts}
        self.api = Api(plane.url, plane.token, agent="test")
        self.simulator = Simulator(plane.url, plane.token, crds, TOOLS / "kubectl-guards", folder / "pods")
        self.path = folder / "bundle"
        self.environment: dict[str, str] = {}
        self.repository: Repository | None = None
        self.certificate = Path()  # of the hosts of charts and of the repository
        self._marks = 0
        tools = folder / "bin"
        tools.mkdir()
        (tools / "helm").symlink_to(TOOLS / helm)
        (tools / "kubectl").symlink_to(TOOLS / "kubectl")
        if (TOOLS / "helmfile").exists():
            (tools / "helmfile").symlink_to(TOOLS / "helmfile")
        write_bundle(bundle, self.path)

    def env(self, **more: str) -> dict[str, str]:
        """What the programs see."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "KUBECONFIG": str(self.plane.kubeconfig),
            "GATE_POLL": "1",
            "GATE_SETTLE": "4",
            "TMPDIR": str(self.folder),
            **self.environment,
            **more,
        }

    def start(self, command: Sequence[str], *, cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
        """A program of the bundle, in a process group of its own; standard error goes where standard output goes."""
        program = str(self.path / command[0]) if (self.path / command[0]).exists() else command[0]
        return _start([program, *command[1:]], self.env(**env), cwd or self.folder)

    def run(self, *command: str, cwd: Path | None = None, timeout: float = 900, **env: str) -> Run:
        """Runs to its end, or is killed with its children after `timeout` seconds."""
        program = str(self.path / command[0]) if (self.path / command[0]).exists() else command[0]
        done = run([program, *command[1:]], self.env(**env), cwd or self.folder, timeout)
        with (self.folder / "runs.log").open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.output}\n[status {done.status}, {done.seconds:.1f} s]\n\n")
        return done

    def deploy(self, *arguments: str, timeout: float = 900, **env: str) -> Run:
        """deploy.sh"""
        return self.run("deploy.sh", *arguments, timeout=timeout, **env)

    def undeploy(self, *arguments: str, **env: str) -> Run:
        """undeploy.sh, without a question."""
        return self.run("undeploy.sh", "--yes", *arguments, **env)

    def helmfile(self, *arguments: str, **env: str) -> Run:
        """helmfile, told the context; the current one has no rights, so a hook that loses the context shows."""
        config = self.folder / "nobody-first"
        text = self.plane.kubeconfig.read_text()
        config.write_text(text.replace('"current-context": "e2e"', '"current-context": "nobody"'))
        command = ["helmfile", "--file", str(self.path / "helmfile.yaml"), "--kube-context", "e2e", *arguments]
        return self.run(*command, **{"KUBECONFIG": str(config), **env})

    def kubectl(self, *arguments: str) -> str:
        """Standard output of kubectl, as administrator."""
        done = self.run("kubectl", *arguments)
        return done.expect(0).output

    def witness(self, *, since_mark: bool = False) -> Witness:
        """The audit log so far, or since `mark`."""
        events = self.plane.audit()
        return Witness(self.bundle.plan, self.charts, events[self._marks if since_mark else 0 :])

    def publish(self, message: str = "A bundle") -> str:
        """Commits the bundle, as it is on disk, to the repository that deployers pull from; the commit."""
        git = self.bundle.plan.settings.git
        assert git is not None
        assert self.repository is not None
        return self.repository.publish(self.path, git.path, message)

    def mark(self) -> None:
        """What is written from here on is looked at by `witness(since_mark=True)`."""
        self._marks = len(self.plane.audit())

    def statuses(self) -> dict[str, str]:
        """Status of the newest revision of each Helm release."""
        newest: dict[str, tuple[int, str]] = {}
        for secret in self.api.list("/api/v1/secrets", labelSelector="owner=helm"):
            labels = secret["metadata"]["labels"]
            newest[labels["name"]] = max(
                newest.get(labels["name"], (0, "")), (int(labels["version"]), labels["status"])
            )
        return {name: status for name, (_, status) in sorted(newest.items())}

    def hold(self, workload: str) -> None:
        """Its pods start anew and do not become ready, so that an upgrade waits, until `faults.unready` is emptied."""
        self.simulator.faults.unready = {*self.simulator.faults.unready, workload}
        pods = self.api.list("/api/v1/pods", labelSelector=f"app={workload}")
        assert pods, f"no pod of {workload}"
        for pod in pods:
            self.api.delete(
                f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}", grace=0
            )

    def pending(self) -> set[tuple[str, int]]:
        """Releases that Helm is at, or was killed at, with the revision that is pending."""
        states = "pending-install,pending-upgrade,pending-rollback"
        found = self.api.list("/api/v1/secrets", labelSelector=f"owner=helm,status in ({states})")
        labels = [secret["metadata"]["labels"] for secret in found]
        return {(of["name"], int(of["version"])) for of in labels}

    def all_deployed(self) -> bool:
        """Whether every release of the bundle is deployed."""
        have = self.statuses()
        return all(have.get(r.id) == "deployed" for r in self.bundle.plan.releases)


def _start(command: list[str], env: dict[str, str], cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=cwd, env=env, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(command: list[str], env: dict[str, str], cwd: Path, timeout: float = 900) -> Run:
    """A program, run to its end; AssertionError with the end of its output when it takes longer than `timeout`."""
    started = time.monotonic()
    process = _start(command, env, cwd)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill(process)
        output, _ = process.communicate()
        raise AssertionError(f"{command[0]} did not end within {timeout} s:\n{output[-4000:]}") from None
    return Run(process.returncode, output, time.monotonic() - started)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the group that a program leads, as when a terminal or a runner dies."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def cluster(
    folder: Path,
    name: str,
    helm: str,
    *,
    nodes: int = 2,
    provided: bool = True,
    pulled: bool = False,
    flags: Flags | None = None,
) -> Iterator[Cluster]:
    """An empty cluster with `nodes` GPU nodes, and what the service itself provides.

    `pulled`: the bundle lies in a Git repository, too, which is served under the address that the bundle names.
    `flags` are those of `bundlec build`.
    """
    crds = Path(os.environ["BUNDLEC_CRDS"])
    catalog = read_catalog(ROOT)
    compiled = compile_bundle(catalog, catalog.workspace.bundles[name], flags or Flags())
    charts = stand_ins(compiled.plan, crds)
    git = compiled.plan.settings.git if pulled else None
    repository = Repository(folder / "git", git.url, git.revision) if git else None
    with (
        control_plane(folder / "plane") as plane,
        upstream_of.served(folder / "upstream", charts, repository) as upstream,
    ):
        made = Cluster(folder, plane, compiled, charts, crds, helm)
        made.environment = upstream.environment
        made.repository, made.certificate = repository, upstream.certificate
        if repository is not None:
            made.publish()
        labels = GKE_LABELS if "gke" in name else NVKE_LABELS
        image = "Container-Optimized OS from Google" if "gke" in name else "Ubuntu 24.04.3 LTS"
        add_nodes(made.api, [node(f"gpu-{i}", labels, os_image=image) for i in range(nodes)])
        if provided:
            provide(made)
        made.simulator.start()
        try:
            yield made
        finally:
            made.simulator.stop()
            made.api.close()


def provide(made: Cluster, *, without: str = "") -> None:
    """The APIs and objects that the recipe expects of the service (GKE: networks)."""
    if "gke" not in made.bundle.plan.bundle:
        return
    group = "/apis/networking.gke.io/v1"
    for kind, plural in (("GKENetworkParamSet", "gkenetworkparamsets"), ("Network", "networks")):
        made.api.create(CRDS, crd_of(made.crds, f"{plural}.networking.gke.io", kind, "Cluster", ("v1",)))
    good = [
        {"type": t, "status": "True", "reason": "Ok", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for t in ("Ready", "ParamsReady")
    ]
    for name in ("gvnic-1", "rdma-0", "rdma-1", "rdma-2", "rdma-3"):
        params = {"vpc": name, "vpcSubnet": name, "deviceMode": "NetDevice" if name == "gvnic-1" else "RDMA"}
        reference = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": name}
        for kind, plural, spec in (
            ("GKENetworkParamSet", "gkenetworkparamsets", params),
            ("Network", "networks", {"type": "Device", "parametersRef": reference}),
        ):
            if f"{kind}/{name}" == without:
                continue
            item = {"apiVersion": "networking.gke.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            _retry(lambda plural=plural, item=item: made.api.create(f"{group}/{plural}", item))
            made.api.merge(f"{group}/{plural}/{name}/status", {"status": {"conditions": good}})


def _retry(action: Callable[[], object], seconds: float = 20) -> object:
    """A CRD is served some moments after it was created."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def has_tools(*names: str) -> bool:
    """Whether `make tools` brought these."""
    return all(shutil.which(str(TOOLS / name)) for name in names)
