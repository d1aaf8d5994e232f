"""Every object of every bundle, as an API server with the real CRDs takes it: no unknown field, no refused value."""

from __future__ import annotations

import os
from pathlib import Path

from compiler.model import Flags
from compiler.pipeline import compile_bundle, read_catalog, write_bundle
from compiler.yamlio import load_all
from tests.e2e.api import Api
from tests.e2e.cluster import ROOT, TOOLS, run
from tests.e2e.plane import control_plane

DEPLOYER = "API server"


def test_objects(tmp_path: Path) -> None:
    """Server-side dry run, strictly validated, of every object of every bundle."""
    crds = Path(os.environ["BUNDLEC_CRDS"])
    catalog = read_catalog(ROOT)
    with control_plane(tmp_path / "plane", controllers=False) as plane:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(plane.kubeconfig)}

        def kubectl(*words: str) -> str:
            return run([str(TOOLS / "kubectl"), *words], env, tmp_path).expect(0).output

        kubectl("create", "-f", str(crds))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
        api = Api(plane.url, plane.token, agent="test")
        count = 0
        for name, entry in catalog.workspace.bundles.items():
            folder = tmp_path / name
            compiled = compile_bundle(catalog, entry, Flags())
            write_bundle(compiled, folder)
            files = sorted(
                path
                for path in (folder / p for p in compiled.files)
                if path.suffix == ".yaml" and _of_a_cluster(path.relative_to(folder).as_posix())
            )
            items = [d.data for f in files for d in load_all(f.read_text(), str(f), strict=False) if d.data]
            wanted = {i["metadata"]["namespace"] for i in items if i.get("metadata", {}).get("namespace")}
            for namespace in sorted(wanted):
                api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            words = [word for f in files for word in ("-f", str(f))]
            kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", *words)
            count += len(items)
        api.close()
        assert count > 500


def _of_a_cluster(path: str) -> bool:
    """Whether a file holds objects that end in a cluster, rather than values, charts or Kustomize's own."""
    first, _, rest = path.partition("/")
    if first == "namespaces":
        return True
    if first == "components":
        return "/manifests/" in path
    if first == "argocd":
        return not rest.startswith("optional/")
    return first == "flux" and not path.endswith(("/kustomization.yaml", "/name-reference.yaml", "/Chart.yaml"))
