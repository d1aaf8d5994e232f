"""An example of each diagnostic code: the small catalog of tests/support/scratch.py, changed so that it is found.

Most come from the table of broken catalogs; what is here are the codes that a build of one changed file does not show.
Each is (what is changed, command); {out} of a command is the folder of bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from tests.support.scratch import API, FILES, Change, appended, replaced

BASE, LEAF, WORKSPACE = "overlays/base.yaml", "overlays/leaf.yaml", "bundlec.yaml"
ALPHA, BETA, GAMMA = (f"components/{name}/component.yaml" for name in ("alpha", "beta", "gamma"))
VALUES = "components/alpha/values.yaml"

Example: TypeAlias = tuple[Mapping[str, Change] | Callable[[Path], object], tuple[str, ...]]

BUILD = ("build", "--all")
LINT = ("lint",)
CHECKS = "  checks:\n    crd: {crd: widgets.example.org}\n"


def spec(text: str) -> Callable[[str], str]:
    """Further fields of `spec`, which ends each file of the catalog."""
    return appended(text)


def entry(text: str) -> Mapping[str, Change]:
    """Further lines of the bundle's entry, which ends bundlec.yaml."""
    return {WORKSPACE: appended("".join(f"      {line}\n" for line in text.splitlines()))}


def overlay(name: str, text: str) -> str:
    return f"{API}kind: Overlay\nmetadata: {{name: {name}}}\nspec:\n{text}"


def in_out(file: str, edit: Callable[[Path], object]) -> Callable[[Path], object]:
    """Something done to a file of the bundle that was built."""
    return lambda root: edit(root / "out" / "demo" / file)


def write(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


def without_gate(path: Path) -> None:
    path.write_text("".join(line for line in path.read_text().splitlines(True) if line.strip() != "gate beta"))


def folder_in_the_way(root: Path) -> None:
    (root / "notes.txt").write_text("mine\n")
    (root / "bundlec.yaml").write_text(FILES[WORKSPACE].replace("spec:\n", "spec:\n  out: notes.txt\n"))


EXAMPLES: Mapping[str, Example] = {
    "BC1105": ({LEAF: replaced("    - name: gamma\n", "    - name: gamma\n      chart: gamma\n")}, BUILD),
    "BC1208": (
        {
            LEAF: replaced(
                '        image: {tag: "1.0"}\n',
                "        image:\n          # tag: 1.0\n        storage:\n          # medium\n",
            )
        },
        BUILD,
    ),
    "BC1210": (lambda root: (root / WORKSPACE).unlink(), BUILD),
    "BC1211": (
        {
            f"overlays/step{n}.yaml": overlay(f"step{n}", f"  base: {f'step{n - 1}' if n > 1 else 'leaf'}\n")
            for n in range(1, 10)
        },
        BUILD,
    ),
    "BC2003": ({"overlays/more.yaml": overlay("more", "  base: leaf\n  match: true\n")}, BUILD),
    "BC2008": (entry("set: {gamma: {fancy: true}}"), BUILD),
    "BC2010": (
        {GAMMA: spec('  requiredValues:\n    - {path: cluster.name, message: "the name under which it reports"}\n')},
        BUILD,
    ),
    "BC2011": (
        {
            LEAF: spec("  inputs:\n    size: {type: string, enum: [small, large], required: true}\n"),
            **entry("inputs: {size: huge}"),
        },
        BUILD,
    ),
    "BC2012": ({LEAF: replaced("    - name: gamma\n", '    - name: gamma\n      version: "v4.5.7"\n')}, BUILD),
    "BC2013": (
        {"mixins/extra.yaml": replaced('">= 1.34"', '"~1.34"')},
        BUILD,
    ),
    "BC2015": (
        {
            LEAF: replaced("    - name: gamma\n", "    - name: gamma\n      enabled: false\n"),
            **entry("set: {gamma: {enabled: true}}"),
        },
        BUILD,
    ),
    "BC2016": ({}, ("explain", "demo", "alpha", "image.tga")),
    "BC2017": (
        {
            GAMMA: spec(
                "  scheduling:\n    accelerated: {nodeSelector: [nodeSelector]}\n  disruptive: {text: It restarts the container runtime of its nodes.}\n"
            )
        },
        BUILD,
    ),
    "BC2018": (entry("set: {alpha: {replcias: 3}}"), BUILD),
    "BC3010": (
        {
            GAMMA: replaced("{name: gamma-system}", "{name: beta-system, labels: {team: a}}"),
            BETA: replaced("{name: beta-system}", "{name: beta-system, labels: {team: b}}"),
        },
        BUILD,
    ),
    "BC3011": (
        {
            ALPHA: replaced(
                "  readiness:\n    api: {checks: [crd]",
                "    all: {field: {group: example.org, version: v1, kind: Widget, resource: widgets, name: one, path: 'status.parts[*].state', equals: up}}\n  readiness:\n    api: {checks: [crd, all]",
            )
        },
        BUILD,
    ),
    "BC3014": (
        {
            ALPHA: replaced(
                "from: crds}", "from: image, after: {group: example.org, kind: Factory, path: spec.widgets}}"
            ),
        },
        BUILD,
    ),
    "BC3015": (
        {LEAF: replaced("dependencyRefs: [beta]", "dependencyRefs: [{name: beta, until: ready}]")},
        BUILD,
    ),
    "BC3016": (
        {
            "components/beta/manifests/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: parts.example.net}\n"
            "spec:\n  group: example.net\n  scope: Namespaced\n  names: {kind: Part, plural: parts}\n  versions: []\n---\n",
            "components/beta/manifests/part.yaml": "apiVersion: example.net/v1\nkind: Part\nmetadata: {name: one}\n",
            BETA: lambda text: (
                text.replace("main: [", "main: [manifests/crd.yaml, manifests/part.yaml, ")
                + "  crds:\n    - {name: parts.example.net, kind: Part, scope: Namespaced, from: manifests}\n"
            ),
        },
        BUILD,
    ),
    "BC3017": (
        {
            WORKSPACE: appended("      cluster: west\n    - name: second\n      recipe: leaf\n      cluster: west\n"),
        },
        BUILD,
    ),
    "BC4003": ({WORKSPACE: replaced("spec:\n", 'spec:\n  argocd: {minVersion: "2.14"}\n')}, BUILD),
    "BC4004": (
        {GAMMA: replaced("oci://registry.example.org/charts", "oci://registry.example.org/{{ charts }}")},
        BUILD,
    ),
    "BC4005": (
        {
            WORKSPACE: replaced(
                "spec:\n", "spec:\n  mirrors:\n    - {from: quay.example.org, to: mirror.example.net/quay}\n"
            )
        },
        BUILD,
    ),
    "BC5001": (in_out("notes.txt", write("mine\n")), BUILD),
    "BC5002": (folder_in_the_way, BUILD),
    "BC5003": ({}, ("build", "demo", "--profile", "mode=fancy")),
    "BC6001": (in_out("deploy.sh", without_gate), ("verify", "out/demo")),
    "BC6002": (in_out("components/alpha/values.yaml", write("replicas: 3\n")), ("verify", "out/demo")),
    "BC6003": (in_out("notes.txt", write("mine\n")), ("verify", "out/demo")),
    "BC6004": ({}, ("verify", "overlays")),
    "BC6005": ({}, ("diff", "--base", "no-such-revision")),
    "BC7001": (
        {"mixins/alone.yaml": f"{API}kind: Mixin\nmetadata: {{name: alone}}\nspec: {{constraints: []}}\n"},
        LINT,
    ),
    "BC7002": ({LEAF: replaced('image: {tag: "1.0"}', 'image: {tag: "1.0"}\n        replicas: 2')}, LINT),
    "BC7003": (
        {
            BASE: spec('  constraints:\n    - {name: Kernel.version, value: ">= 6.8"}\n'),
            LEAF: spec('  constraints:\n    - {name: Kernel.version, value: ">= 6.5"}\n'),
        },
        LINT,
    ),
    "BC7004": ({VALUES: replaced("replicas: 2", "replicas: 2\nsidecar: {tag: latest}")}, LINT),
    "BC7005": ({}, LINT),
    "BC7006": (
        {
            BASE: spec(
                "  assertions:\n    - {id: two, that: {value: 'alpha:replicas', equals: 2}, message: two of them}\n"
            ),
            LEAF: spec(
                "  assertions:\n    - {id: two, that: {value: 'alpha:replicas', atLeast: 1}, message: one will do, reason: a small cloud}\n"
            ),
        },
        LINT,
    ),
    "BC7007": (
        {
            "overlays/other.yaml": overlay(
                "other",
                "  base: base\n  criteria: {service: other}\n  inputs:\n    size: {type: string, required: true}\n",
            )
        },
        LINT,
    ),
    "BC7008": (
        {
            WORKSPACE: appended(
                "  lint:\n    waivers:\n      - {code: BC7004, where: components/alpha/values.yaml, reason: known}\n"
            )
        },
        LINT,
    ),
    "BC7009": ({WORKSPACE: appended("    - {name: second, recipe: leaf}\n")}, LINT),
}
