"""Mirrors: what is fetched from elsewhere, on every deployer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.emit import emit
from compiler.errors import UserError
from compiler.load import load
from compiler.model import Chart, Flags, Mirror, Plan
from compiler.plan import plan
from compiler.resolve import entry_for, mirrors, resolve
from compiler.source import Path as Path_
from compiler.source import parse_path
from compiler.yamlio import load_all
from tests.conftest import ROOT
from tests.support.workspaces import catalog, pointed, recipe, the_finding

HTTP = Chart("https://charts.example.com/stable", "x", "1.2.3")
OCI = Chart("oci://ghcr.io/nvidia/charts", "y", "v1.0.0")


def moved(chart: Chart, *pairs: tuple[str, str]) -> tuple[str, str]:
    """Repository and name of a chart under these mirrors, given as in bundlec.yaml."""
    from compiler.errors import Collector
    from compiler.source import built_in

    found = Collector()
    read = mirrors.read([{"from": a, "to": b} for a, b in pairs], lambda _: built_in("x"), found)
    assert not found.found
    got = mirrors.chart(chart, read, mirrors.Seen())
    return got.repository, got.name


@pytest.mark.parametrize(
    ("chart", "pairs", "repository", "name"),
    [
        (HTTP, [("https://charts.example.com", "https://m.example.org/h")], "https://m.example.org/h/stable", "x"),
        (HTTP, [("https://charts.example.com/", "https://m.example.org/h/")], "https://m.example.org/h/stable", "x"),
        (HTTP, [("https://charts.example.com/stable", "oci://m.example.org/h")], "oci://m.example.org/h", "x"),
        (HTTP, [("https://charts.example.co", "https://m")], "https://charts.example.com/stable", "x"),
        (HTTP, [("https://charts.example.com/stab", "https://m")], "https://charts.example.com/stable", "x"),
        (HTTP, [("charts.example.com", "oci://m")], "https://charts.example.com/stable", "x"),
        (HTTP, [("https://charts.example.com", "http://m:8080")], "http://m:8080/stable", "x"),
        (OCI, [("ghcr.io", "oci://m.example.org/g")], "oci://m.example.org/g/nvidia/charts", "y"),
        (OCI, [("oci://ghcr.io/nvidia/charts", "m.example.org/g")], "oci://m.example.org/g", "y"),
        (OCI, [("ghcr.io/nvidia/charts/y", "m.example.org/other")], "oci://m.example.org", "other"),
        (OCI, [("ghcr.io/nvidia/charts/y2", "m.example.org/z")], "oci://ghcr.io/nvidia/charts", "y"),
        (OCI, [("ghcr.io", "m/short"), ("ghcr.io/nvidia", "m/long")], "oci://m/long/charts", "y"),
        (OCI, [("ghcr.io/nvidia", "m/long"), ("ghcr.io", "m/short")], "oci://m/long/charts", "y"),
    ],
)
def test_the_longest_prefix_that_ends_at_a_part(
    chart: Chart, pairs: list[tuple[str, str]], repository: str, name: str
) -> None:
    assert moved(chart, *pairs) == (repository, name)


@pytest.mark.parametrize(
    ("image", "source", "result"),
    [
        ("registry.k8s.io/kubectl:v1", "registry.k8s.io", "m.example.org/k/kubectl:v1"),
        ("registry.k8s.io/kubectl:v1", "oci://registry.k8s.io/kubectl", "m.example.org/k:v1"),
        ("registry.k8s.io/kubectl@sha256:aa", "registry.k8s.io/kubectl", "m.example.org/k@sha256:aa"),
        ("registry.k8s.io/kubectl-x:v1", "registry.k8s.io/kubectl", "registry.k8s.io/kubectl-x:v1"),
        ("registry.k8s.io:5000/kubectl:v1", "registry.k8s.io:5000", "m.example.org/k/kubectl:v1"),
        ("pytorch/pytorch:2@sha256:aa", "docker.io", "m.example.org/k/pytorch/pytorch:2@sha256:aa"),
        ("busybox:1", "docker.io/library", "m.example.org/k/busybox:1"),
        ("localhost/busybox:1", "docker.io", "localhost/busybox:1"),
        ("registry.k8s.io/kubectl:v1", "https://registry.k8s.io", "registry.k8s.io/kubectl:v1"),
    ],
)
def test_images(image: str, source: str, result: str) -> None:
    mirror = Mirror(source if "://" in source else f"oci://{source}", "oci://m.example.org/k", plain_http=False)
    assert mirrors.image(image, [mirror], mirrors.Seen()) == result


FILES = {
    "overlays/base.yaml": "",
    "overlays/eks.yaml": """
        {base: base, criteria: {service: eks}, componentRefs: [{name: web}, {name: reg}, {name: ours}, {name: after}]}
    """,
    "components/web": "",
    "components/reg/component.yaml": """
        namespace: {name: reg}
        chart: {repository: "oci://ghcr.io/nvidia/charts", name: reg, version: "1.0.0"}
        crds: [{name: things.example.org, kind: Thing, scope: Namespaced, from: crds, applyBefore: true}]
        checks: {up: {deployment: {name: reg}}}
        readiness: {ready: {checks: [up], timeout: 5m}}
    """,
    "components/ours/component.yaml": """
        namespace: {name: ours}
        manifestValues: [image, other]
        manifests: {main: [m.yaml.j2]}
        images: [{path: image, form: ref}, {path: other, form: repo+tag}]
    """,
    "components/ours/values.yaml": "image: ghcr.io/a/b:1\nother: {repository: docker.io/library/busybox, tag: '1.0'}\n",
    "components/ours/m.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {image: {{ values.image | to_json }}, other: {{ values.other.repository | to_json }}}
""",
    "components/after": "needs: [{component: reg, until: ready}]",
}
BUNDLE = "git: {url: 'https://git.example.com/x.git', revision: main}\nbundles: [{name: b, recipe: eks}]\n"
MIRRORS = """
mirrors:
  - {from: https://charts.example.com, to: https://m.example.org/h}
  - {from: ghcr.io, to: oci://m.example.org/g}
  - {from: registry.k8s.io, to: oci://m.example.org/k}
  - {from: docker.io/library, to: m.example.org/d}
"""


def planned(root: Path, settings: str, deployers: tuple[str, ...] | None = None) -> Plan:
    found = catalog(root, {**FILES, "bundlec.yaml": BUNDLE + settings})
    return plan(resolve(found, entry_for(found, "b"), Flags(deployers=deployers)))


def texts(made: Plan) -> dict[str, str]:
    return {name: data.decode() for name, data in emit(made).items()}


def test_every_deployer_fetches_from_the_mirror_alone(tmp_path: Path) -> None:
    made = planned(tmp_path, MIRRORS)
    assert made.warnings == ()
    files = texts(made)
    for name, text in files.items():
        for origin in ("charts.example.com", "ghcr.io", "registry.k8s.io", "docker.io"):
            assert origin not in text, f"{name} names {origin}"
    assert "release web web web" in files["deploy.sh"]
    assert "--repo https://m.example.org/h --version 1.2.3" in files["deploy.sh"]
    assert "oci://m.example.org/g/nvidia/charts/reg --version 1.0.0" in files["deploy.sh"]
    assert "oci://m.example.org/g/nvidia/charts/reg --version 1.0.0" in files["lib/prepare"]
    (helmfile,) = load_all(files["helmfile.yaml"], "x")
    assert helmfile.data["repositories"] == [{"name": "m.example.org-h", "url": "https://m.example.org/h"}]
    by_name = {r["name"]: r["chart"] for r in helmfile.data["releases"]}
    assert by_name["reg"] == "oci://m.example.org/g/nvidia/charts/reg"
    (app,) = load_all(files["argocd/apps/reg.yaml"], "x")
    assert app.data["spec"]["sources"][0]["repoURL"] == "m.example.org/g/nvidia/charts"
    (source,) = load_all(files["flux/releases/reg/source.yaml"], "x")
    assert source.data["spec"]["url"] == "oci://m.example.org/g/nvidia/charts/reg"
    assert "m.example.org/k/kubectl:" in files["argocd/guards/after/after.yaml"]
    (config,) = [o.data["data"] for r in made.releases for o in r.objects if o.kind == "ConfigMap"]
    assert config == {"image": "m.example.org/g/a/b:1", "other": "m.example.org/d/busybox"}


def test_an_image_that_the_bundle_sets_stays(tmp_path: Path) -> None:
    workspace = BUNDLE.replace("recipe: eks", "recipe: eks, set: {ours: {image: 'ghcr.io/mine:1'}}")
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": workspace + MIRRORS})
    assert resolve(found, entry_for(found, "b"), Flags()).components["ours"].values["image"] == "ghcr.io/mine:1"


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("item", "word", "fix"),
    [
        (
            "{from: quay.io, to: m.example.org/q}",
            "nothing that bundlec knows of comes from `quay.io`",
            "correct `from`",
        ),
        ("{from: gchr.io, to: m.example.org/q}", "comes from `gchr.io`", "did you mean `ghcr.io`?"),
        (
            "{from: ghcr.io/nvidea, to: m.example.org/q}",
            "comes from `ghcr.io/nvidea`",
            "did you mean `ghcr.io/nvidia`?",
        ),
        (
            "{from: https://chart.example.com, to: https://m}",
            "comes from",
            "did you mean `https://charts.example.com`?",
        ),
        # The other one is longer, and all that comes from here is a chart.
        (
            "{from: things.example.org/a, to: m.a}, {from: things.example.org/a/b, to: m.b}",
            "whatever comes from `things.example.org/a`, such as `things.example.org/a/b:1`, has another mirror",
            "remove it",
        ),
    ],
)
def test_a_mirror_that_moves_nothing_is_refused(tmp_path: Path, shared: bool, item: str, word: str, fix: str) -> None:
    """With the closest match; the one of the workspace as well as that of an entry."""
    text = BUNDLE + f"mirrors: [{item}]" if shared else BUNDLE.replace("eks}", f"eks, mirrors: [{item}]}}")
    files = {**FILES, "bundlec.yaml": text, "components/ours/values.yaml": OURS}
    if shared and "a/b" in item:
        assert recipe(tmp_path, files, "b").warnings == ()  # another bundle may have more from there
        return
    one = the_finding(catalog(tmp_path, files), "b", "BC4005")
    assert one.severity == "error"
    assert word in one.message
    assert fix in str(one.fix)
    assert pointed(tmp_path, one.span).startswith("bundlec.yaml: " + item.partition("from: ")[2].partition(",")[0])


OURS = "image: things.example.org/a/b:1\nother: {repository: docker.io/library/busybox, tag: '1.0'}\n"


@pytest.mark.parametrize("host", ["quay.io", "docker.io", "https://other.example.com"])
def test_a_mirror_of_the_workspace_is_for_any_of_its_bundles(tmp_path: Path, host: str) -> None:
    """What only another recipe has: a chart, an image of a values file, or one that an overlay sets."""
    files = {
        **FILES,
        "components/more/component.yaml": "namespace: {name: more}\nimages: [{path: a}, {path: b}]\n"
        "chart: {repository: 'https://other.example.com', name: x, version: '1'}\n",
        "components/more/values.yaml": "a: quay.io/a/b:1\n",
        "overlays/gke.yaml": "base: base\ncriteria: {service: gke}\n"
        "componentRefs: [{name: more, overrides: {b: busybox}}]",
        "components/ours/values.yaml": OURS.replace("docker.io/library/busybox", "things.example.org/x"),
    }
    to = "https://m.example.org" if "https" in host else "m.example.org"
    item = f"{{from: {host}, to: {to}}}"
    shared = catalog(tmp_path, {**files, "bundlec.yaml": BUNDLE + f"mirrors: [{item}]"})
    assert resolve(shared, entry_for(shared, "b"), Flags()).warnings == ()
    own = catalog(tmp_path, {**files, "bundlec.yaml": BUNDLE.replace("eks}", f"eks, mirrors: [{item}]}}")})
    the_finding(own, "b", "BC4005")


PLAIN = "mirrors: [{from: ghcr.io, to: 'oci://m.example.org:5000/g', plainHTTP: true}]"


def test_a_registry_without_tls(tmp_path: Path) -> None:
    files = texts(planned(tmp_path, PLAIN, ("deploy.sh", "helmfile", "flux")))
    (line,) = [line for line in files["deploy.sh"].splitlines() if line.strip().startswith("release reg ")]
    assert line.endswith("oci://m.example.org:5000/g/nvidia/charts/reg --version 1.0.0 --plain-http")
    assert "--plain-http -- things.example.org" in files["lib/prepare"]
    assert [line for line in files["deploy.sh"].splitlines() if "--plain-http" in line] == [line]
    (helmfile,) = load_all(files["helmfile.yaml"], "x")
    assert {r["name"]: r.get("plainHttp") for r in helmfile.data["releases"]} == {
        "reg": True, "web": None, "ours": None, "after": None,
    }  # fmt: skip
    (source,) = load_all(files["flux/releases/reg/source.yaml"], "x")
    assert source.data["spec"]["insecure"] is True


def test_argo_cd_refuses_a_registry_without_tls_with_its_reason(tmp_path: Path) -> None:
    made = planned(tmp_path, PLAIN, ("argocd",))
    with pytest.raises(UserError) as caught:
        emit(made)
    (one,) = caught.value.diagnostics
    assert one.code == "BC4003"
    assert "Argo CD takes plain HTTP" in one.message
    assert "its own repository settings" in one.message


@pytest.mark.parametrize(
    ("item", "at", "word"),
    [
        ("{from: ghcr.io, to: https://m}", "https://m", "in one"),
        ("{from: ftp://x, to: https://m}", "ftp://x", "no address"),
        ("{from: https://x, to: 'oci://'}", "'oci://'", "no address"),
        ("{from: https://x, to: https://m, plainHTTP: true}", "true", "by its address"),
        ("{from: ghcr.io, to: m.a}, {from: oci://ghcr.io, to: m.b}", "{from: oci://ghcr.io", "two mirrors"),
    ],
)
def test_mirrors_that_cannot_be(tmp_path: Path, item: str, at: str, word: str) -> None:
    found = catalog(tmp_path, {**FILES, "bundlec.yaml": BUNDLE + f"mirrors: [{item}]"})
    one = the_finding(found, "b", "BC4003")
    assert word in one.message
    assert pointed(tmp_path, one.span).startswith(f"bundlec.yaml: {at}")


def test_a_version_of_the_recipe_stays_on_the_mirror(tmp_path: Path) -> None:
    files: dict[str, Any] = {**FILES, "bundlec.yaml": BUNDLE + PLAIN.replace("ghcr.io", "oci://ghcr.io")}
    files["overlays/eks.yaml"] = files["overlays/eks.yaml"].replace(
        "{name: reg}", '{name: reg, version: "2.0.0", reason: r}'
    )
    found = catalog(tmp_path, files)
    made = plan(resolve(found, entry_for(found, "b"), Flags()))
    assert made.release("reg").chart == Chart("oci://m.example.org:5000/g/nvidia/charts", "reg", "2.0.0", True)


def _addresses(data: Any, at: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """Value paths that hold the address of an image, by their key."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, str) and "/" in value and str(key).lower().endswith(("image", "repository", "registry")):
            yield (*at, key), value
        yield from _addresses(value, (*at, key))


def test_every_image_that_our_values_name_is_declared() -> None:
    found = load(ROOT)
    met = 0
    for component in found.components.values():
        declared = {(*parse_path(i["path"]), *["repository"] * (i["form"] == "repo+tag")) for i in component.images}
        for document in (component.values, *component.values_files.values()):
            for path, value in _addresses(document.data if document else {}):
                assert path in declared, f"{component.name}: {path} holds {value}, and `images` does not say so"
                met += 1
    assert met > 15


def test_what_the_operands_of_nvke_are_pulled_from() -> None:
    found = load(ROOT)
    moves = {"mirrors": [{"from": host, "to": f"m.example.org/{host}"} for host in ("nvcr.io", "docker.io")]}
    name = "gb200-nvke-ubuntu-training"
    made = plan(resolve(found, entry_for(found, name), Flags(settings=(("--x", moves),))))
    assert [d.message for d in made.warnings if d.code == "BC4005"] == []
    (policy,) = [o.data["spec"] for r in made.releases for o in r.objects if o.kind == "NicClusterPolicy"]
    blocks = [policy["nvIpam"], *policy["secondaryNetwork"].values()]
    assert {b["repository"] for b in blocks} == {"m.example.org/nvcr.io/nvidia/mellanox"}
    operator = made.release("nodewright-operator")
    assert operator.values["webhook"]["removalImage"] == "m.example.org/docker.io/alpine/kubectl"
