"""Pull requests in script form: a catalog, a change of it, and what `bundlec diff` says about it.

`python -m tests.review.scripted` writes the expected reports anew; read what changed before you commit it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.repositories import Repository, repository
from tests.support.scratch import API, FILES, Change, appended, replaced

EXPECTED = Path(__file__).parent / "expected"
FORMS = {"text": "txt", "md": "md", "json": "json"}


@dataclass(frozen=True)
class PullRequest:
    """`base` are changes of the scratch catalog that are committed, `head` those under review."""

    head: Mapping[str, Change]
    base: Mapping[str, Change] = field(default_factory=dict)
    status: int = 4


def _component(name: str, spec: str) -> str:
    return API + f"kind: Component\nmetadata: {{name: {name}}}\nspec:\n{spec}"


def _leaf(number: int) -> str:
    return API + (
        f"kind: Overlay\nmetadata: {{name: leaf-{number}}}\nspec:\n  base: base\n"
        f"  criteria: {{service: cloud-{number}}}\n  mixins: [tuned]\n"
        "  componentRefs:\n    - {name: beta, dependencyRefs: [alpha]}\n"
    )


_NINE: Mapping[str, Change] = {
    **{f"overlays/leaf-{n}.yaml": _leaf(n) for n in range(1, 10)},
    "bundlec.yaml": replaced(
        "    - name: demo\n      recipe: leaf\n",
        "".join(f"    - {{name: d{n}, recipe: leaf-{n}}}\n" for n in range(1, 10)),
    ),
    "components/beta/component.yaml": appended("  mixinPaths: [greeting]\n"),
    "mixins/tuned.yaml": appended("  componentRefs:\n    - name: beta\n      overrides: {greeting: hi}\n"),
}
_DELTA: Mapping[str, Change] = {
    "components/delta/component.yaml": _component(
        "delta", "  namespace: {name: delta-system}\n  manifests: {main: [manifests/agent.yaml]}\n"
    ),
    "components/delta/manifests/agent.yaml": (
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: agent}}\n"
        "  template:\n    metadata: {labels: {app: agent}}\n    spec:\n      containers:\n"
        "        - {name: agent, image: example.org/agent:1, securityContext: {privileged: true}}\n"
    ),
}
_WITH_DELTA = replaced(
    "    - name: gamma\n      dependencyRefs: [beta]\n",
    "    - name: delta\n    - name: gamma\n      dependencyRefs: [beta, delta]\n",
)
_DRIVER = "driver:\n  enabled: true\n  version: {version}\n"

PULL_REQUESTS: Mapping[str, PullRequest] = {
    "version-bump": PullRequest(
        {"components/alpha/component.yaml": replaced('version: "1.2.3"', 'version: "2.0.0"')},
        {
            "components/alpha/component.yaml": appended(
                "  upgrade:\n    before: [Drain the queue.]\n    notes: [{to: 2.0.0, text: The queue moves.}]\n"
            )
        },
    ),
    "mixin-value": PullRequest({"mixins/tuned.yaml": replaced("greeting: hi", "greeting: good morning")}, _NINE),
    "new-component": PullRequest({**_DELTA, "overlays/leaf.yaml": _WITH_DELTA}),
    "removed-component": PullRequest(
        {
            "overlays/leaf.yaml": replaced("    - name: delta\n", "    - {name: delta, enabled: false}\n"),
        },
        {**_DELTA, "overlays/leaf.yaml": _WITH_DELTA},
    ),
    "renamed-overlay": PullRequest(
        {
            "overlays/leaf.yaml": None,
            "overlays/leaf-gb200.yaml": FILES["overlays/leaf.yaml"].replace("name: leaf}", "name: leaf-gb200}"),
            "bundlec.yaml": replaced("recipe: leaf", "recipe: leaf-gb200"),
        }
    ),
    "gate-timeout": PullRequest({"components/alpha/component.yaml": replaced("timeout: 5m", "timeout: 15m")}),
    "changed-dependency": PullRequest(
        {"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [{name: alpha, until: api}]")}
    ),
    "null-delete": PullRequest(
        {"overlays/leaf.yaml": replaced('image: {tag: "1.0"}', 'image: {tag: "1.0"}\n        storage: null')}
    ),
    "reformat": PullRequest(
        {
            "components/alpha/values.yaml": lambda text: (
                "# Reformatted.\n" + text.replace("replicas: 2", "replicas:   2")
            ),
            "mixins/tuned.yaml": replaced(
                "{name: OS.release.ID, value: ubuntu}", 'name: OS.release.ID\n      value: "ubuntu"'
            ),
        },
        status=0,
    ),
    "driver-version": PullRequest(
        {"components/gamma/values.yaml": _DRIVER.format(version='"581.10"')},
        {
            "components/gamma/values.yaml": _DRIVER.format(version='"580.95"'),
            "components/gamma/component.yaml": appended(
                "  risks:\n    - {path: driver.version, text: The driver is reloaded on every node.}\n"
            ),
        },
    ),
    "namespace-move": PullRequest(
        {"components/beta/component.yaml": replaced("name: beta-system", "name: widgets")},
        {"bundlec.yaml": appended("    - {name: fancy, recipe: leaf, profile: {mode: fancy}, disable: []}\n")},
    ),
    "broken-source": PullRequest(
        {"overlays/leaf.yaml": replaced("dependencyRefs: [beta]", "dependencyRefs: [betta]")}, status=1
    ),
}


def made(root: Path, name: str) -> Repository:
    """The repository of a pull request: the base committed, the head in the work tree."""
    request = PULL_REQUESTS[name]
    found = repository(root, request.base)
    found.write(request.head)
    return found


def main() -> None:
    """Write what the program says today as what it should say."""
    EXPECTED.mkdir(exist_ok=True)
    for name in PULL_REQUESTS:
        with tempfile.TemporaryDirectory() as folder:
            found = made(Path(folder) / "repository", name)
            for form, end in FORMS.items():
                (EXPECTED / f"{name}.{end}").write_text(found.diff("--format", form).out, encoding="utf-8")


if __name__ == "__main__":
    main()
