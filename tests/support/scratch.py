"""A small catalog that compiles for all four deployers, changed in one place by each test, and the command line in this
process.

The catalog: recipe `leaf` on `base` with mixins `tuned` and `extra` and a profile; chart component `alpha` brings the
CRD Widget, manifest-only component `beta` uses it, chart component `gamma` needs `beta`.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.cli import main

API = "apiVersion: bundlec.dev/v1alpha1\n"

FILES: Mapping[str, str] = {
    "bundlec.yaml": API
    + """\
kind: Workspace
spec:
  git: {url: "https://git.example.org/bundles.git", revision: main}
  bundles:
    - name: demo
      recipe: leaf
""",
    "overlays/base.yaml": API
    + """\
kind: Overlay
metadata: {name: base}
spec:
  componentRefs:
    - name: alpha
""",
    "overlays/leaf.yaml": API
    + """\
kind: Overlay
metadata: {name: leaf}
spec:
  base: base
  criteria: {service: any-cloud, accelerator: gb200}
  mixins: [tuned, extra]
  componentRefs:
    - name: alpha
      overrides:
        image: {tag: "1.0"}
    - name: beta
      dependencyRefs: [alpha]
    - name: gamma
      dependencyRefs: [beta]
  profile:
    name: mode
    default: plain
    values:
      plain:
        constraints: [{name: NodeTopology.gpu-nodes.label, value: "!fancy"}]
        componentRefs: [{name: gamma, overrides: {fancy: false}}]
      fancy:
        constraints: [{name: NodeTopology.gpu-nodes.label, value: fancy=true}]
        componentRefs: [{name: gamma, overrides: {fancy: true}}]
""",
    "mixins/tuned.yaml": API
    + """\
kind: Mixin
metadata: {name: tuned}
spec:
  constraints:
    - {name: OS.release.ID, value: ubuntu}
""",
    "mixins/extra.yaml": API
    + """\
kind: Mixin
metadata: {name: extra}
spec:
  constraints:
    - {name: K8s.server.version, value: ">= 1.34"}
""",
    "components/alpha/component.yaml": API
    + """\
kind: Component
metadata: {name: alpha}
spec:
  aliases: [first]
  namespace: {name: alpha-system}
  chart: {repository: "https://charts.example.org", name: alpha, version: "1.2.3"}
  crds:
    - {name: widgets.example.org, kind: Widget, scope: Namespaced, from: crds}
  checks:
    crd: {crd: widgets.example.org}
  readiness:
    api: {checks: [crd], timeout: 5m}
""",
    "components/alpha/values.yaml": """\
replicas: 2
image:
  repository: example.org/alpha
  tag: "0.9"
storage: {emptyDir: {medium: Memory}}
""",
    "components/beta/component.yaml": API
    + """\
kind: Component
metadata: {name: beta}
spec:
  namespace: {name: beta-system}
  manifests:
    main: [manifests/widget.yaml, manifests/settings.yaml.j2]
""",
    "components/beta/values.yaml": """\
greeting: hello
""",
    "components/beta/manifests/widget.yaml": """\
apiVersion: example.org/v1
kind: Widget
metadata:
  name: one
spec:
  size: 3
""",
    "components/beta/manifests/settings.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  greeting: {{ values.greeting | to_json }}
""",
    "components/gamma/component.yaml": API
    + """\
kind: Component
metadata: {name: gamma}
spec:
  namespace: {name: gamma-system}
  chart: {repository: "oci://registry.example.org/charts", name: gamma, version: "v4.5.6"}
""",
}

Change = str | bytes | Callable[[str], str] | None
"""What becomes of a file: its new content, a function of the old one, or None to leave it out."""


def replaced(old: str, new: str) -> Callable[[str], str]:
    """A change that replaces `old`, which stands in the file once."""

    def change(text: str) -> str:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in:\n{text}"
        return text.replace(old, new)

    return change


def appended(lines: str) -> Callable[[str], str]:
    """A change that adds lines at the end."""
    return lambda text: text + lines


def write_catalog(root: Path, changes: Mapping[str, Change] | None = None) -> Path:
    """Write the catalog with `changes` (file -> change) below `root`; returns `root`."""
    changes = changes or {}
    for name in {**FILES, **changes}:
        change = changes.get(name, FILES.get(name))
        text = change(FILES[name]) if callable(change) else change
        path = root / name
        if text is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str


def bundlec(*arguments: str | Path, cwd: Path, **env: str) -> Ran:
    """Run the command line in this process, in the folder `cwd`, with further environment variables."""
    out, err = _Stream(), _Stream()
    before, old = Path.cwd(), dict(os.environ)
    os.chdir(cwd)
    os.environ.update(env)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(old)
    return Ran(status, out.text(), err.text())


def told(text: str) -> list[str]:
    """The findings of an output for people, each as `place: [code] message | fix`."""
    found = []
    for block in text.strip().split("\n\n"):
        head, *rest = block.splitlines()
        if "[BC" in head:
            fixes = [line.removeprefix("  fix: ") for line in rest if line.startswith("  fix: ")]
            found.append(" | ".join([head, *fixes]))
    return found


class _Stream(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def state(root: Path) -> dict[str, Any]:
    """Everything below `root` that a build could have touched: content, modification time, mode, inode of each path."""
    found: dict[str, Any] = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[path.relative_to(root).as_posix()] = (status.st_mtime_ns, status.st_mode, status.st_ino, content)
    return found


def tree(root: Path) -> dict[str, bytes]:
    """Content of each file below `root`; empty when there is none."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
