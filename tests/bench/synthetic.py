"""A made-up catalog of any size, shaped like a real one: charts and manifests, values, needs, CRDs, gates."""

from __future__ import annotations

from pathlib import Path

FANOUT = 3  # dependencies of a component


def write_catalog(root: Path, size: int) -> None:
    """Write a workspace of one recipe with `size` components below `root`."""
    _put(root, "bundlec.yaml", _WORKSPACE)
    refs = "\n".join(_reference(number) for number in range(size))
    _put(
        root,
        "overlays/everything.yaml",
        f"{_head('Overlay', 'everything')}  criteria: {{intent: training}}\n  componentRefs:\n{refs}\n",
    )
    for number in range(size):
        name = _name(number)
        _put(root, f"components/{name}/component.yaml", _component(number))
        _put(root, f"components/{name}/values.yaml", _values(number))
        if number % 2:
            _put(root, f"components/{name}/manifests/settings.yaml", _manifest(name))


def _name(number: int) -> str:
    return f"part-{number:04}"


def _head(kind: str, name: str) -> str:
    return f"apiVersion: bundlec.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n"


def _reference(number: int) -> str:
    # A part needs parts at half, a third and a quarter of its number: a graph of logarithmic depth with wide levels.
    needs = sorted({number // divisor for divisor in range(2, 2 + FANOUT) if number // divisor < number})
    lines = [f"    - name: {_name(number)}"]
    if needs:
        # What brings an API is waited for until it is up: a gate.
        refs = [_name(n) if n % 10 else f"{{name: {_name(n)}, until: ready}}" for n in needs]
        lines.append(f"      dependencyRefs: [{', '.join(refs)}]")
    if number % 5 == 0:
        lines.append(f"      overrides: {{replicas: {number % 7 + 1}}}")
    if number % 2:
        lines.append("      manifestFiles: [manifests/settings.yaml]")
    return "\n".join(lines)


def _component(number: int) -> str:
    name = _name(number)
    lines = [
        f"  namespace: {{name: space-{number // 4}}}",
        "  chart:",
        "    repository: https://charts.example.com/stable",
        f"    name: {name}",
        f'    version: "1.{number}.0"',
    ]
    if number % 10 == 0:
        lines += [
            "  crds:",
            f"    - {{name: things.{name}.example.com, kind: Thing, scope: Namespaced, from: crds}}",
            "  checks:",
            f"    api: {{crd: things.{name}.example.com}}",
            f"    up: {{deployment: {{name: {name}}}}}",
            "  readiness:",
            "    api: {checks: [api]}",
            "    ready: {checks: [up]}",
        ]
    return _head("Component", name) + "\n".join(lines) + "\n"


def _values(number: int) -> str:
    return "".join(
        f"section{part}:\n  enabled: {str(part % 2 == 0).lower()}\n  image: {{repository: registry.example.com/{part},"
        f' tag: "{number}.{part}"}}\n  resources: {{limits: {{cpu: 100m, memory: {part + 1}Gi}}}}\n'
        for part in range(8)
    )


def _manifest(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-settings\ndata:\n  mode: fast\n"


def _put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


_WORKSPACE = """\
apiVersion: bundlec.dev/v1alpha1
kind: Workspace
spec:
  git: {url: "https://git.example.com/platform/bundles.git", revision: main, path: out}
  deployers: [deploy.sh, helmfile, argocd, flux]
  bundles:
    - {name: everything, recipe: everything, prefix: ev}
  flux:
    source: {kind: GitRepository, existing: false, interval: 1m}
"""
