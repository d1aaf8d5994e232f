"""Edits of the scratch catalog, each by its name: what people change in sources, and what they break."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.support.scratch import API, FILES, Change, appended, replaced

Sources = dict[str, str]
Edit = Callable[[Sources], None]

_CHECK = "  checks:\n    up: {deployment: {name: gamma}}\n  readiness: {ready: {checks: [up], timeout: 3m}}\n"
BASE: Mapping[str, Change] = MappingProxyType(
    {
        "bundlec.yaml": appended(
            "    - {name: fancy, recipe: leaf, prefix: fc, profile: {mode: fancy}, inputs: {flavour: sour}}\n"
            "  gates: {poll: 4s}\n  flux: {source: {interval: 2m}}\n"
        ),
        "overlays/leaf.yaml": lambda text: (
            text.replace(
                "  profile:\n", "    - {name: epsilon, dependencyRefs: [{name: gamma, until: ready}]}\n  profile:\n"
            )
            + "  inputs:\n    flavour:\n      type: string\n      enum: [sweet, sour]\n      default: sweet\n"
            "      description: Taste.\n      effects:\n        sour: [{name: alpha, overrides: {taste: {acid: 7}}}]\n"
            "  operations: [Look at the nodes.]\n"
        ),
        "components/alpha/values-big.yaml": "replicas: 9\nbig: true\n",
        "components/beta/component.yaml": appended("  mixinPaths: [greeting]\n"),
        "components/beta/manifests/roles.yaml": (
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: reader\nrules:\n"
            "  - apiGroups: ['']\n    resources: [pods]\n    verbs: [get]\n---\n"
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: a}}\n"
            "  template:\n    metadata: {labels: {app: a}}\n    spec:\n      containers:\n"
            "        - {name: agent, image: 'example.org/agent:1'}\n"
        ),
        "components/gamma/component.yaml": appended(
            _CHECK + "  storage: {class: [store.class]}\n  scheduling: {system: {nodeSelector: [place]}}\n"
        ),
        "components/gamma/values.yaml": "fancy: false\nlevel: 3\n",
        "components/epsilon/component.yaml": API
        + (
            "kind: Component\nmetadata: {name: epsilon}\nspec:\n  namespace: {name: epsilon-system}\n"
            "  chart: {repository: 'https://charts.example.org', name: epsilon, version: 0.1.0}\n"
        ),
        "mixins/more.yaml": API
        + (
            "kind: Mixin\nmetadata: {name: more}\nspec:\n  componentRefs:\n    - name: beta\n"
            "      overrides: {greeting: welcome}\n    - {name: delta, dependencyRefs: [alpha]}\n"
        ),
        "components/delta/component.yaml": API
        + (
            "kind: Component\nmetadata: {name: delta}\nspec:\n  namespace: {name: delta-system}\n"
            "  chart: {repository: 'https://charts.example.org', name: delta, version: 0.3.0}\n"
        ),
    }
)


def base() -> Sources:
    """The files of the base: the scratch catalog with a second bundle, an input and some more to edit."""
    files = dict(FILES)
    for name, change in BASE.items():
        text = change(files[name]) if callable(change) else change
        assert isinstance(text, str)
        files[name] = text
    return files


def _sub(file: str, old: str, new: str) -> Edit:
    change = replaced(old, new)

    def edit(files: Sources) -> None:
        if file in files and old in files[file]:
            files[file] = change(files[file])

    return edit


def _add(file: str, lines: str) -> Edit:
    def edit(files: Sources) -> None:
        if file in files:
            files[file] += lines

    return edit


def _entry(lines: str) -> Edit:
    """Settings of the bundle demo, the first one."""
    return _sub("bundlec.yaml", "      recipe: leaf\n", f"      recipe: leaf\n{lines}")


def _moved(old: str, new: str, *changes: tuple[str, str, str]) -> Edit:
    """A file gets another name, and texts follow: (file, regular expression, replacement)."""

    def edit(files: Sources) -> None:
        if old not in files:
            return
        files[new] = files.pop(old)
        for file, pattern, text in changes:
            if file in files:
                files[file] = re.sub(pattern, text, files[file])

    return edit


def _gone(file: str) -> Edit:
    def edit(files: Sources) -> None:
        files.pop(file, None)

    return edit


def _component_renamed(files: Sources) -> None:
    for name in [n for n in files if n.startswith("components/beta/")]:
        files[name.replace("/beta/", "/better/")] = files.pop(name)
    for name, text in list(files.items()):
        files[name] = re.sub(r"(name: |\[)beta(?=[,\]}\n])", r"\1better", text)


_ALPHA, _BETA, _GAMMA = (f"components/{name}/component.yaml" for name in ("alpha", "beta", "gamma"))
_LEAF, _BUNDLES = "overlays/leaf.yaml", "bundlec.yaml"
_TEMPLATE, _ROLES = "components/beta/manifests/settings.yaml.j2", "components/beta/manifests/roles.yaml"

QUIET: Mapping[str, Edit] = MappingProxyType(
    {
        "a comment": _add("components/alpha/values.yaml", "# words\n"),
        "blanks": _sub(_LEAF, 'tag: "1.0"', 'tag:   "1.0"'),
        "another order of keys": _sub("components/alpha/values.yaml", 'tag: "0.9"\n', "tag: '0.9'\n"),
        "a value that is overridden": _sub("components/alpha/values.yaml", '"0.9"', '"0.8"'),
        "an unused mixin": _sub("mixins/more.yaml", "welcome", "hello there"),
        "an unused values file": _sub("components/alpha/values-big.yaml", "9", "11"),
        "an unused manifest": _sub(_ROLES, "[pods]", "[pods, nodes]"),
        "a component that nobody takes": _sub("components/delta/component.yaml", "0.3.0", "0.3.1"),
        "a comment in a manifest": _sub(_TEMPLATE, "data:\n  gr", "# words\ndata:\n  gr"),
    }
)
"""Edits that change no bundle."""

LOUD: Mapping[str, Edit] = MappingProxyType(
    {
        "a value": _sub("components/alpha/values.yaml", "replicas: 2", "replicas: 3"),
        "a type": _sub("components/gamma/values.yaml", "level: 3", 'level: "3"'),
        "an override": _sub(_LEAF, 'tag: "1.0"', 'tag: "1.1"'),
        "a value goes": _sub("components/gamma/values.yaml", "level: 3\n", ""),
        "a null": _sub(_LEAF, 'tag: "1.0"}', 'tag: "1.0"}\n        storage: null'),
        "a values file": _sub(_LEAF, "    - name: alpha\n", "    - name: alpha\n      valuesFile: values-big.yaml\n"),
        "a mixin": _sub(_LEAF, "[tuned, extra]", "[tuned, extra, more]"),
        "a constraint": _sub("mixins/extra.yaml", "1.34", "1.35"),
        "an object": _sub("components/beta/manifests/widget.yaml", "size: 3", "size: 4"),
        "another object's name": _sub("components/beta/manifests/widget.yaml", "name: one", "name: two"),
        "a template": _sub(_TEMPLATE, "data:\n  gr", "data:\n  more: thing\n  gr"),
        "a value that a template reads": _sub("components/beta/values.yaml", "hello", "good day"),
        "a manifest": _sub(_BETA, "settings.yaml.j2]", "settings.yaml.j2, manifests/roles.yaml]"),
        "a manifest before": _sub(_GAMMA, "spec:\n", "spec:\n  manifests: {pre: [manifests/crd.yaml]}\n"),
        "a manifest goes": _sub(_BETA, "manifests/widget.yaml, ", ""),
        "a chart version": _sub(_ALPHA, "1.2.3", "2.0.0"),
        "a chart repository": _sub(_GAMMA, "registry.example.org/charts", "registry.example.org/mirror"),
        "a pin": _sub(_LEAF, "    - name: gamma\n", "    - name: gamma\n      version: v4.5.7\n      reason: a fix\n"),
        "a namespace": _sub(_BETA, "beta-system", "widgets"),
        "a label of a namespace": _sub(
            _GAMMA,
            "{name: gamma-system}",
            "{name: gamma-system, labels: {pod-security.kubernetes.io/enforce: privileged}}",
        ),
        "a deadline": _sub(_ALPHA, "timeout: 5m", "timeout: 7m"),
        "a check": _sub(_GAMMA, "{deployment: {name: gamma}}", "{statefulset: {name: gamma}}"),
        "an install timeout": _sub(_GAMMA, "spec:\n", "spec:\n  install: {timeout: 20m}\n"),
        "drift": _sub(
            _GAMMA,
            "spec:\n",
            "spec:\n  drift: [{group: apps, kind: Deployment, paths: [/spec/replicas], reason: scaled}]\n",
        ),
        "a prerequisite": _sub(_GAMMA, "spec:\n", "spec:\n  prerequisites: [{id: a, text: Do this first.}]\n"),
        "an edge": _sub(_LEAF, "dependencyRefs: [beta]", "dependencyRefs: [beta, {name: alpha, until: api}]"),
        "an edge goes": _sub(_LEAF, "      dependencyRefs: [beta]\n", ""),
        "a component": _sub(_LEAF, "    - name: beta\n", "    - name: delta\n    - name: beta\n"),
        "a component is switched off": _sub(_LEAF, "{name: epsilon, ", "{name: epsilon, enabled: false, "),
        "where a CRD comes from": _sub(_ALPHA, "from: crds", "from: templates"),
        "a profile's value": _sub(_LEAF, "overrides: {fancy: true}", "overrides: {fancy: very}"),
        "a profile's constraint": _sub(_LEAF, "value: fancy=true", "value: fancy=yes"),
        "the default of a profile": _sub(_LEAF, "default: plain", "default: fancy"),
        "the profile of a bundle": _sub(_BUNDLES, "{mode: fancy}", "{mode: plain}"),
        "the default of an input": _sub(_LEAF, "default: sweet", "default: sour"),
        "an input of a bundle": _entry("      inputs: {flavour: sour}\n"),
        "an effect of an input": _sub(_LEAF, "{acid: 7}", "{acid: 8}"),
        "a value of a bundle": _entry("      set: {gamma: {level: 4}}\n"),
        "a component off in a bundle": _entry("      disable: [{component: epsilon, reason: no need}]\n"),
        "a prefix": _sub(_BUNDLES, "prefix: fc", "prefix: fancier"),
        "a prefix of its own": _entry("      prefix: dm\n"),
        "a setting of a bundle": _entry("      argocd: {selfHeal: false}\n"),
        "a setting of all": _sub(_BUNDLES, "interval: 2m", "interval: 7m"),
        "the poll of gates": _sub(_BUNDLES, "poll: 4s", "poll: 9s"),
        "no readiness": _sub(_BUNDLES, "poll: 4s", "poll: 4s, ready: false"),
        "longer deadlines": _sub(_BUNDLES, "poll: 4s", "poll: 4s, timeoutScale: 2"),
        "deployers": _add(_BUNDLES, "  deployers: [deploy.sh, flux]\n"),
        "a Git branch": _sub(_BUNDLES, "revision: main", "revision: prod"),
        "a mirror": _add(
            _BUNDLES, "  mirrors: [{from: 'https://charts.example.org', to: 'oci://mirror.example.org/charts'}]\n"
        ),
        "placement": _add(_BUNDLES, "  placement: {system: {nodeSelector: {pool: system}}}\n"),
        "storage": _entry("      storage: {class: fast}\n"),
        "a renamed overlay": _moved(
            _LEAF,
            "overlays/leaves/leaf-two.yaml",
            ("overlays/leaves/leaf-two.yaml", r"name: leaf\b", "name: leaf-two"),
            (_BUNDLES, r"recipe: leaf\b", "recipe: leaf-two"),
        ),
        "a renamed mixin": _moved(
            "mixins/tuned.yaml",
            "mixins/tuned-more.yaml",
            ("mixins/tuned-more.yaml", "name: tuned", "name: tuned-more"),
            (_LEAF, r"\[tuned,", "[tuned-more,"),
        ),
        "a renamed component": _component_renamed,
        "a renamed bundle": _sub(_BUNDLES, "name: demo", "name: demonstration"),
        "a bundle more": _add("overlays/base.yaml", "    - name: delta\n"),
        "words": _sub(_LEAF, "Look at the nodes.", "Look at all nodes."),
        "a description": _sub(_LEAF, "spec:\n", "spec:\n  description: Words.\n"),
    }
)
"""Edits that change a bundle at least."""

BROKEN: Mapping[str, Edit] = MappingProxyType(
    {
        "a name that nobody has": _sub(_LEAF, "dependencyRefs: [alpha]", "dependencyRefs: [alfa]"),
        "a file that is listed and gone": _gone("components/beta/manifests/widget.yaml"),
        "an overlay gone": _gone("overlays/base.yaml"),
        "no YAML": _add("mixins/extra.yaml", "  x: [\n"),
        "a template that fails": _sub(_TEMPLATE, "values.greeting", "values.greating"),
        "a profile that is not there": _sub(_BUNDLES, "{mode: fancy}", "{mode: fanciest}"),
    }
)
"""Edits after which the catalog, or a bundle of it, does not compile."""

ALL: Mapping[str, Edit] = MappingProxyType({**QUIET, **LOUD, **BROKEN})


def edited(*names: str) -> dict[str, Any]:
    """The files of the base after some edits, in the order given; an edit whose text is gone changes nothing."""
    files = base()
    for name in names:
        ALL[name](files)
    return files
