"""Catalogs that are broken in one place: every one is refused with its place, a code and what to do, and out/ stays as
it was.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.scratch import API, FILES, Change, appended, bundlec, replaced, state, told, write_catalog

WORKSPACE = "bundlec.yaml"
BASE = "overlays/base.yaml"
LEAF = "overlays/leaf.yaml"
ALPHA = "components/alpha/component.yaml"
VALUES = "components/alpha/values.yaml"
BETA = "components/beta/component.yaml"
GAMMA = "components/gamma/component.yaml"
WIDGET = "components/beta/manifests/widget.yaml"
SETTINGS = "components/beta/manifests/settings.yaml.j2"
TUNED = "mixins/tuned.yaml"
EXTRA = "mixins/extra.yaml"

Edit: TypeAlias = Callable[[Path], object]
Broken: TypeAlias = tuple[Mapping[str, Change] | Edit, list[str]]
"""What is changed, and the findings: `place: [code] message | fix`."""


def overlay(name: str, spec: str) -> str:
    return f"{API}kind: Overlay\nmetadata: {{name: {name}}}\nspec:\n{spec}"


def instead(name: str, make: Callable[[Path], object]) -> Edit:
    """Something else in place of a file."""

    def edit(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        make(root / name)

    return edit


def link(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def apply(root: Path, change: Mapping[str, Change] | Edit) -> None:
    if callable(change):
        change(root)
        return
    for name in change:
        (root / name).unlink(missing_ok=True)
    write_catalog(root, change)


# The ten that a user meets first.
TEN: dict[str, Broken] = {
    "unknown key": (
        {LEAF: replaced("dependencyRefs: [alpha]", "dependencyRef: [alpha]")},
        [
            "overlays/leaf.yaml:13:7: [BC1101] unknown key `dependencyRef` in spec.componentRefs[1] | did you mean `dependencyRefs`?",
        ],
    ),
    "missing base": (
        {LEAF: replaced("base: base", "base: bose")},
        [
            "overlays/leaf.yaml:5:9: [BC1204] unknown overlay `bose` | did you mean `base`?",
        ],
    ),
    "cycle of bases": (
        {
            "overlays/a.yaml": overlay("a", "  base: b\n"),
            "overlays/b.yaml": overlay("b", "  base: c\n"),
            "overlays/c.yaml": overlay("c", "  base: a\n"),
        },
        [
            "overlays/a.yaml:5:9: [BC1205] overlays build on each other: a -> b -> c -> a | remove one `base`",
        ],
    ),
    "duplicate key": (
        {LEAF: appended("  mixins: []\n")},
        [
            "overlays/leaf.yaml:26:3: [BC1002] the key `mixins` stands twice in one mapping: lines 7 and 26 | merge the two or remove one",
        ],
    ),
    "bad type of a version": (
        {ALPHA: replaced('version: "1.2.3"', "version: 25.10")},
        [
            'components/alpha/component.yaml:7:75: [BC1102] spec.chart.version must be a quoted string, not the number 25.1 | write "25.10" with quotes',
        ],
    ),
    "unknown component": (
        {LEAF: replaced("name: gamma\n", "name: gama\n")},
        [
            "overlays/leaf.yaml:14:13: [BC1204] unknown component `gama` | did you mean `gamma`?",
        ],
    ),
    "wrong kind": (
        {ALPHA: replaced("kind: Component", "kind: Overlay")},
        [
            "components/alpha/component.yaml:2:7: [BC1104] kind is `Overlay` | write `kind: Component`",
        ],
    ),
    "two mixins in conflict": (
        {EXTRA: replaced('{name: K8s.server.version, value: ">= 1.34"}', "{name: OS.release.ID, value: cos}")},
        [
            "mixins/tuned.yaml:6:7: [BC2004] mixin `tuned` states the constraint `OS.release.ID`, which is there already | state it in one place; a mixin overrides nothing",
        ],
    ),
    "name over its limit": (
        {WORKSPACE: replaced("name: demo", f"name: demo\n      prefix: {'p' * 56}")},
        [
            "bundlec.yaml:7:15: [BC4001] the name `pppppppppppppppppppppppppppppppppppppppppppppppppppppppp-gate-beta` has 66 characters, 63 are allowed | set `prefix: pppppppppppppppppppppppppppppppppppppppppppppppppppp` (at most 52 characters) for the bundle `demo` in bundlec.yaml",
            "bundlec.yaml:7:15: [BC4001] the name `pppppppppppppppppppppppppppppppppppppppppppppppppppppppp-namespaces` has 67 characters, 63 are allowed | set `prefix: pppppppppppppppppppppppppppppppppppppppppppppppppppp` (at most 52 characters) for the bundle `demo` in bundlec.yaml",
        ],
    ),
    "alias clash": (
        {GAMMA: replaced("spec:\n", "spec:\n  aliases: [First]\n")},
        [
            "components/gamma/component.yaml:5:13: [BC1203] the alias `First` is taken by alpha (letter case does not count) | choose another alias, or remove it",
        ],
    ),
}

MORE: dict[str, Broken] = {
    # YAML
    "tab": (
        {LEAF: replaced("  base: base\n", "\tbase: base\n")},
        [
            "overlays/leaf.yaml:5:1: [BC1001] found character that cannot start any token (while scanning for the next token) | indent with spaces, not with tabs",
        ],
    ),
    "Latin-1": (
        {LEAF: FILES[LEAF].replace("  base:", "  description: caf\xe9\n  base:").encode("latin-1")},
        [
            "overlays/leaf.yaml:5:19: [BC1001] the file is not UTF-8 | save it as UTF-8",
        ],
    ),
    "UTF-16": (
        {LEAF: FILES[LEAF].encode("utf-16")},
        [
            "overlays/leaf.yaml:1:1: [BC1001] the file is not UTF-8 | save it as UTF-8",
        ],
    ),
    "a NUL": (
        {LEAF: replaced("base: base", "base: ba\0se")},
        [
            "overlays/leaf.yaml:5:11: [BC1001] control characters are not allowed | correct the YAML here or just before",
        ],
    ),
    "duplicate key in values": (
        {VALUES: appended("image: {}\n")},
        [
            "components/alpha/values.yaml:6:1: [BC1002] the key `image` stands twice in one mapping: lines 2 and 6 | merge the two or remove one",
        ],
    ),
    "a boolean of YAML 1.1": (
        {VALUES: appended("flag: yes\n")},
        [
            'components/alpha/values.yaml:6:7: [BC1003] plain `yes` is a boolean to some YAML readers, text to others | quote it: "yes"',
        ],
    ),
    "an octal number": (
        {WIDGET: replaced("size: 3", "size: 0755")},
        [
            'components/beta/manifests/widget.yaml:6:9: [BC1003] plain `0755` is an octal number to some YAML readers, a decimal to others | quote it: "0755", or write the decimal 493',
        ],
    ),
    "an integer beyond 2^53": (
        {VALUES: replaced("replicas: 2", "replicas: 9007199254740993")},
        [
            "components/alpha/values.yaml:1:11: [BC1004] `9007199254740993`: integers beyond 2^53 lose digits in Helm and JSON | quote it if it is text",
        ],
    ),
    "5000 digits": (
        {VALUES: replaced("replicas: 2", f"replicas: {'9' * 5000}")},
        [
            "components/alpha/values.yaml:1:11: [BC1004] `999999999999999999999999999999999999...`: integers beyond 2^53 lose digits in Helm and JSON | quote it if it is text",
        ],
    ),
    "infinity": (
        {VALUES: replaced("replicas: 2", "replicas: .inf")},
        [
            "components/alpha/values.yaml:1:11: [BC1004] `.inf`: JSON has no infinity and no NaN | quote it if it is text",
        ],
    ),
    "a huge float": (
        {VALUES: replaced("replicas: 2", "replicas: 1.0e+999")},
        [
            "components/alpha/values.yaml:1:11: [BC1004] `1.0e+999`: no float is that large | quote it if it is text",
        ],
    ),
    "5000 brackets": (
        {LEAF: "[" * 5000 + "]" * 5000},
        [
            "overlays/leaf.yaml:1:1001: [BC1001] exceeded maximum nesting depth (while increasing flow level) | correct the YAML here or just before",
        ],
    ),
    "150 levels": (
        {VALUES: "".join("  " * level + "a:\n" for level in range(150))},
        [
            "components/alpha/values.yaml:101:201: [BC1005] nested deeper than 100 levels | flatten the structure",
        ],
    ),
    "aliases that multiply": (
        {LEAF: "a: &a [x, x]\nb: [*a, *a]\n"},
        [
            "overlays/leaf.yaml:1:4: [BC1005] the anchor `&a` is not accepted here | write the value out where it is used",
            "overlays/leaf.yaml:2:5: [BC1005] the alias `*a` is not accepted here | write the value out",
            "overlays/leaf.yaml:2:9: [BC1005] the alias `*a` is not accepted here | write the value out",
        ],
    ),
    "a merge key": (
        {LEAF: appended("  <<: {a: 1}\n")},
        [
            "overlays/leaf.yaml:26:3: [BC1005] a merge key is not accepted here | write the keys out",
        ],
    ),
    "a tag": (
        {LEAF: replaced("base: base", "base: !!python/object:os.system x")},
        [
            "overlays/leaf.yaml:5:9: [BC1005] the tag `tag:yaml.org,2002:python/object:os.system` is not accepted here | remove it",
        ],
    ),
    "a second document": (
        {LEAF: appended("---\na: 1\n")},
        [
            "overlays/leaf.yaml:27:1: [BC1005] a second document in a file that holds one | split the file at `---`",
        ],
    ),
    "an empty overlay": (
        {LEAF: ""},
        [
            "overlays/leaf.yaml:1:1: [BC1104] the file is empty, and should be a mapping of kind Overlay | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Overlay`",
        ],
    ),
    "comments only": (
        {LEAF: "# nothing\n"},
        [
            "overlays/leaf.yaml:1:1: [BC1104] the file is empty, and should be a mapping of kind Overlay | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Overlay`",
        ],
    ),
    "an empty component": (
        {ALPHA: ""},
        [
            "components/alpha/component.yaml:1:1: [BC1104] the file is empty, and should be a mapping of kind Component | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Component`",
        ],
    ),
    "an empty workspace": (
        {WORKSPACE: ""},
        [
            "bundlec.yaml:1:1: [BC1104] the file is empty, and should be a mapping of kind Workspace | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Workspace`",
        ],
    ),
    "a workspace that is a list": (
        {WORKSPACE: "- a\n"},
        [
            "bundlec.yaml:1:1: [BC1104] the file holds a list, and should be a mapping of kind Workspace | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Workspace`",
        ],
    ),
    "a workspace that is a text": (
        {WORKSPACE: "hello\n"},
        [
            "bundlec.yaml:1:1: [BC1104] the file holds `hello`, and should be a mapping of kind Workspace | begin with `apiVersion: bundlec.dev/v1alpha1` and `kind: Workspace`",
        ],
    ),
    # schema and catalog
    "unknown key without a close one": (
        {LEAF: replaced("  base: base\n", "  base: base\n  zoo: 1\n")},
        [
            "overlays/leaf.yaml:6:3: [BC1101] unknown key `zoo` in spec | known here: abstract, assertions, clusterProvides, constraints, description, inputs, knownGaps, match, maturity, operations, prerequisites, validation",
        ],
    ),
    "wrong apiVersion": (
        {ALPHA: replaced("v1alpha1", "v1")},
        [
            "components/alpha/component.yaml:1:13: [BC1104] apiVersion is `bundlec.dev/v1` | write `apiVersion: bundlec.dev/v1alpha1`",
        ],
    ),
    "a version that is a boolean": (
        {ALPHA: replaced('version: "1.2.3"', "version: true")},
        [
            'components/alpha/component.yaml:7:75: [BC1102] spec.chart.version must be a quoted string, not true | write "true" with quotes',
        ],
    ),
    "a version that is a word": (
        {ALPHA: replaced('version: "1.2.3"', 'version: "latest"')},
        [
            "components/alpha/component.yaml:7:75: [BC1102] spec.chart.version: `latest` is not valid | a version such as 1.2.3 or v1.2.3, without blanks",
        ],
    ),
    "a constraint that is a float": (
        {EXTRA: replaced('">= 1.34"', "1.30")},
        [
            'mixins/extra.yaml:6:41: [BC1102] spec.constraints[0].value must be a quoted string, not the number 1.3 | write "1.30" with quotes',
        ],
    ),
    "a required key is missing": (
        {ALPHA: replaced("  namespace: {name: alpha-system}\n", "")},
        [
            "components/alpha/component.yaml:4:1: [BC1103] `namespace` is missing in spec | add `namespace: ...`",
        ],
    ),
    "unknown deployer": (
        {WORKSPACE: replaced("spec:\n", "spec:\n  deployers: [deploy.sh, argo]\n")},
        [
            "bundlec.yaml:4:26: [BC1102] spec.deployers[1]: `argo` is none of deploy.sh, helmfile, argocd, flux | did you mean `argocd`?",
        ],
    ),
    "an overlay without a base": (
        {LEAF: replaced("  base: base\n", "")},
        [
            "overlays/leaf.yaml:4:1: [BC1103] `base` is missing in leaf | write `base: base`; only the root has none",
        ],
    ),
    "an overlay on itself": (
        {"overlays/a.yaml": overlay("a", "  base: a\n")},
        [
            "overlays/a.yaml:5:9: [BC1205] overlays build on each other: a -> a | remove one `base`",
        ],
    ),
    "unknown mixin": (
        {LEAF: replaced("[tuned, extra]", "[tund, extra]")},
        [
            "overlays/leaf.yaml:7:12: [BC1204] unknown mixin `tund` | did you mean `tuned`?",
        ],
    ),
    "unknown dependency": (
        {LEAF: replaced("dependencyRefs: [beta]", "dependencyRefs: [betta]")},
        [
            "overlays/leaf.yaml:15:24: [BC1204] unknown component `betta` | did you mean `beta`?",
        ],
    ),
    "unknown check": (
        {ALPHA: replaced("checks: [crd]", "checks: [crdd]")},
        [
            "components/alpha/component.yaml:13:20: [BC1207] alpha has no check `crdd` | did you mean `crd`?",
        ],
    ),
    "another name than the file's": (
        {LEAF: replaced("{name: leaf}", "{name: lief}")},
        [
            "overlays/leaf.yaml:3:18: [BC1201] metadata.name is `lief`, but the name of the file or folder makes it `leaf` | write `name: leaf`, or rename leaf.yaml",
        ],
    ),
    "a file that is not read": (
        {"overlays/x.yml": overlay("x", "  base: base\n")},
        [
            "overlays/x.yml:1:1: [BC1201] overlays/x.yml is not read | rename it to x.yaml",
        ],
    ),
    "a folder without component.yaml": (
        {ALPHA: None},
        [
            "components/alpha: [BC1201] components/alpha holds no component.yaml | write its component.yaml, or remove the folder",
        ],
    ),
    "a component name of 49 characters": (
        {
            f"components/{'x' * 49}/component.yaml": f"{API}kind: Component\nmetadata: {{name: {'x' * 49}}}\nspec: {{namespace: {{name: x}}}}\n"
        },
        [
            "components/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/component.yaml:3:18: [BC1202] `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` has 49 characters; 48 at most (Helm allows 53 with `-post`) | shorten it by 1",
        ],
    ),
    "an alias that is a name": (
        {GAMMA: replaced("spec:\n", "spec:\n  aliases: [ALPHA]\n")},
        [
            "components/gamma/component.yaml:5:13: [BC1203] the alias `ALPHA` is taken by alpha (letter case does not count) | choose another alias, or remove it",
        ],
    ),
    "a manifest that is missing": (
        {WIDGET: None},
        [
            "components/beta/component.yaml:7:12: [BC1206] there is no file components/beta/manifests/widget.yaml | create it, or correct the path",
        ],
    ),
    "a manifest outside of its folder": (
        {BETA: replaced("manifests/widget.yaml", "../alpha/values.yaml")},
        [
            "components/beta/component.yaml:7:12: [BC1206] `../alpha/values.yaml` leads out of the component's folder | move the file into the component's folder, and name it relative to that",
        ],
    ),
    "two bundles of one name": (
        {WORKSPACE: appended("    - {name: demo, recipe: leaf, prefix: x}\n")},
        [
            "bundlec.yaml:8:14: [BC1203] two bundles have the name `demo` | give one of them another",
        ],
    ),
    "two bundles of one prefix": (
        {WORKSPACE: appended("    - {name: other, recipe: leaf, prefix: demo}\n")},
        [
            "bundlec.yaml:8:7: [BC1203] two bundles have the prefix `demo` | give one of them another",
        ],
    ),
    "a predicate of no form": (
        {LEAF: appended("  assertions: [{id: floor, that: {component: gamma}, message: too old}]\n")},
        [
            'overlays/leaf.yaml:26:34: [BC1209] a `component` predicate has exactly one of `enabled` and `version` | write `enabled: true` or, for the chart, `version: ">= 1.2.3"`',
        ],
    ),
    # resolution
    "unknown recipe": (
        {WORKSPACE: replaced("recipe: leaf", "recipe: laef")},
        [
            "bundlec.yaml:7:15: [BC2001] there is no recipe `laef` | did you mean `leaf`?",
        ],
    ),
    "criteria that contradict the base": (
        {BASE: replaced("spec:\n", "spec:\n  criteria: {service: gke}\n")},
        [
            "overlays/leaf.yaml:6:23: [BC2002] overlay `leaf` says service: any-cloud, but inherits service: gke from `base` | write service: gke or leave it out; for another service build on another base",
        ],
    ),
    "wrong profile value": (
        {WORKSPACE: replaced("recipe: leaf", "recipe: leaf\n      profile: {mode: fancey}")},
        [
            "bundlec.yaml:8:23: [BC2007] profile `mode` has no value `fancey` | did you mean `fancy`?",
        ],
    ),
    "unknown profile": (
        {WORKSPACE: replaced("recipe: leaf", "recipe: leaf\n      profile: {mod: fancy}")},
        [
            "bundlec.yaml:8:17: [BC2007] the recipe has no profile `mod` | did you mean `mode`?",
        ],
    ),
    "a mixin over an inherited component": (
        {EXTRA: appended('  componentRefs: [{name: alpha, version: "2.0.0", reason: newer}]\n')},
        [
            "mixins/extra.yaml:7:42: [BC2004] mixin `extra` sets `version` of `alpha`, which overlay base brings | a mixin may only add manifests, dependencies and values at the component's `mixinPaths`",
        ],
    ),
    "a text over a map": (
        {LEAF: replaced('image: {tag: "1.0"}', "image: none")},
        [
            "overlays/leaf.yaml:11:16: [BC2005] `alpha:image` is a map (alpha values.yaml) and becomes a scalar (overlay leaf) | write a map; to replace it on purpose, set null in a layer between the two",
        ],
    ),
    "a null that deletes nothing": (
        {LEAF: replaced('image: {tag: "1.0"}', "imag: null")},
        [
            "overlays/leaf.yaml:11:9: [BC2009] `imag: null` (overlay leaf) deletes nothing: no earlier layer sets it, and the component lists no such default of its chart | did you mean `image`?",
        ],
    ),
    "values for nobody": (
        {WORKSPACE: appended("      set: {alfa: {replicas: 3}}\n")},
        [
            "bundlec.yaml:8:13: [BC2006] `alfa` is no component | did you mean `alpha`?",
        ],
    ),
    "a locked value": (
        {ALPHA: replaced("spec:\n", "spec:\n  lockedPaths: [{path: image.tag, reason: checks name it}]\n")},
        [
            "overlays/leaf.yaml:11:17: [BC2014] `alpha:image.tag` (overlay leaf) is locked: checks name it | change it in the component, together with the fields that depend on it",
        ],
    ),
    "a setting that no component reads": (
        {WORKSPACE: appended("  storage: {class: fast}\n")},
        [
            "bundlec.yaml:8:13: [BC2006] no component of this recipe reads `storage.class` | remove it; in bundlec.yaml move it to the bundles whose components read it",
        ],
    ),
    "git without a revision": (
        {WORKSPACE: replaced(", revision: main", "")},
        [
            "bundlec.yaml:4:3: [BC4002] `git.revision` is not set, and argocd and flux read the bundle from Git | add `revision` to `git`",
        ],
    ),
    # plan
    "a dependency that the recipe lacks": (
        {LEAF: replaced("    - name: beta\n      dependencyRefs: [alpha]\n", "")},
        [
            "overlays/leaf.yaml:13:24: [BC3001] `gamma` needs `beta`, which this recipe does not declare | add `beta` to `componentRefs`, or remove the dependency",
        ],
    ),
    "a cycle of dependencies": (
        {LEAF: replaced("    - name: alpha\n", "    - name: alpha\n      dependencyRefs: [gamma]\n")},
        [
            "overlays/leaf.yaml:10:24: [BC3002] components wait for each other: alpha -> gamma -> beta -> alpha | remove one of these dependencies",
        ],
    ),
    "a component that needs itself": (
        {LEAF: replaced("    - name: alpha\n", "    - name: alpha\n      dependencyRefs: [alpha]\n")},
        [
            "overlays/leaf.yaml:10:24: [BC3002] components wait for each other: alpha -> alpha | remove one of these dependencies",
        ],
    ),
    "an API that nothing brings": (
        {ALPHA: replaced("widgets.example.org, kind: Widget", "gadgets.example.org, kind: Gadget")},
        [
            "components/beta/manifests/widget.yaml:1:1: [BC3003] nothing brings the API example.org/Widget that Widget one of `beta` uses | add the component that brings it, or list it in the recipe's `clusterProvides`",
        ],
    ),
    "a template without its value": (
        {SETTINGS: replaced("values.greeting", "values.greting")},
        [
            "components/beta/manifests/settings.yaml.j2:6:1: [BC3007] `beta` cannot render this template: 'dict object' has no attribute 'greting' | declare the value with a default in the component's values.yaml, or correct the expression",
        ],
    ),
    "a template that is not one": (
        {SETTINGS: replaced("}}", "}")},
        [
            "components/beta/manifests/settings.yaml.j2:6:1: [BC3007] template syntax: unexpected '}' | correct the template: `{{ value }}`, `{% if ... %}`, `{# comment #}`",
        ],
    ),
    "a template that renders no YAML": (
        {SETTINGS: replaced("\ndata:", "\ndata: {{ '[' }}")},
        [
            "components/beta/manifests/settings.yaml.j2:1:1: [BC3007] renders to YAML that is refused: did not find expected ',' or ']' (while parsing a flow sequence) (line 7 of the rendered text) | correct the YAML here or just before",
        ],
    ),
    "a null in a manifest": (
        {WIDGET: replaced("size: 3", "size: null")},
        [
            "components/beta/manifests/widget.yaml:6:9: [BC3013] null at `spec.size` | leave the key out",
        ],
    ),
    "a manifest without a kind": (
        {WIDGET: replaced("kind: Widget\n", "")},
        [
            "components/beta/manifests/widget.yaml:1:1: [BC3008] not a Kubernetes object: `kind` must be a string | an object has apiVersion, kind and metadata.name; values that are not objects belong in another file",
        ],
    ),
    "one object twice": (
        {WIDGET: appended("---\napiVersion: example.org/v2\nkind: Widget\nmetadata: {name: one}\n")},
        [
            "components/beta/manifests/widget.yaml:8:1: [BC3009] Widget beta-system/one is rendered twice | keep it in one file; two components may not own one object",
        ],
    ),
    "two owners of a CRD": (
        {GAMMA: appended("  crds:\n    - {name: widgets.example.org, kind: Widget, scope: Namespaced, from: crds}\n")},
        [
            "components/alpha/component.yaml:9:7: [BC3005] CRD widgets.example.org is brought by `alpha`, `gamma`, and none of them owns it | mark it `shared: true` in each of them and `owner: true` in exactly one",
        ],
    ),
    "two components that conflict": (
        {GAMMA: appended("  conflicts: [{component: beta, reason: they fight}]\n")},
        [
            "overlays/leaf.yaml:12:7: [BC3004] `gamma` and `beta` exclude each other: they fight | disable or remove one of them",
        ],
    ),
    "a rule that does not hold": (
        {LEAF: appended('  assertions: [{id: floor, that: {component: gamma, version: ">= 9"}, message: too old}]\n')},
        [
            'overlays/leaf.yaml:14:7: [BC3006] too old (rule `floor`) | the rule asks for gamma is version ">= 9"',
        ],
    ),
    "a core component that needs an ops one": (
        {ALPHA: replaced("spec:\n", "spec:\n  class: ops\n")},
        [
            "overlays/leaf.yaml:13:24: [BC3012] `beta` is of class core and needs `alpha`, which is not | make the provider core, or the dependant ops",
        ],
    ),
    # emit
    "no repository": (
        {WORKSPACE: replaced('  git: {url: "https://git.example.org/bundles.git", revision: main}\n', "")},
        [
            "bundlec.yaml:5:7: [BC4002] argocd reads the bundle from Git: no repository is set | set `git` in bundlec.yaml",
            "bundlec.yaml:5:7: [BC4002] flux reads the bundle from Git: no repository is set | set `git` in bundlec.yaml",
        ],
    ),
    "a namespace over its limit": (
        {ALPHA: replaced("alpha-system", "a" * 64)},
        [
            "components/alpha/component.yaml:1:1: [BC4001] the namespace `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` has 64 characters, 63 are allowed | shorten it by 1",
        ],
    ),
    # things that are no files
    "a folder instead of an overlay": (
        instead(LEAF, Path.mkdir),
        [
            "overlays/leaf.yaml:1:1: [BC1006] cannot be read: it is a folder | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a folder instead of values": (
        instead(VALUES, Path.mkdir),
        [
            "components/alpha/values.yaml:1:1: [BC1006] cannot be read: it is a folder | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a folder instead of bundlec.yaml": (
        instead(WORKSPACE, Path.mkdir),
        [
            "bundlec.yaml:1:1: [BC1006] cannot be read: it is a folder | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a folder instead of a manifest": (
        instead(WIDGET, Path.mkdir),
        [
            "components/beta/component.yaml:7:12: [BC1206] there is no file components/beta/manifests/widget.yaml | create it, or correct the path",
        ],
    ),
    "a link to itself instead of an overlay": (
        instead(LEAF, link("leaf.yaml")),
        [
            "overlays/leaf.yaml:1:1: [BC1006] cannot be read: Too many levels of symbolic links | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a link to itself instead of values": (
        instead(VALUES, link("values.yaml")),
        [
            "components/alpha/values.yaml:1:1: [BC1006] cannot be read: Too many levels of symbolic links | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a link to itself instead of a manifest": (
        instead(WIDGET, link("widget.yaml")),
        [
            "components/beta/manifests/widget.yaml:1:1: [BC1006] cannot be read: Too many levels of symbolic links | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a link to itself among the components": (
        instead("components/loop", link("loop")),
        [
            "components/loop:1:1: [BC1006] cannot be read: Too many levels of symbolic links | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a link to nothing instead of values": (
        instead(VALUES, link("nowhere")),
        [
            "components/alpha/values.yaml:1:1: [BC1006] cannot be read: No such file or directory | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a link that leaves the component": (
        instead(WIDGET, link("/etc/hostname")),
        [
            "components/beta/component.yaml:7:12: [BC1206] `manifests/widget.yaml` leads out of the component's folder | move the file into the component's folder, and name it relative to that",
        ],
    ),
    "a link to a folder of overlays": (
        instead("overlays/more", link(".")),
        [
            "overlays/more: [BC1206] overlays/more is a link to a folder and is not followed | list the folder that holds overlays/ in `data` of bundlec.yaml",
        ],
    ),
    "a pipe instead of an overlay": (
        instead(LEAF, os.mkfifo),
        [
            "overlays/leaf.yaml:1:1: [BC1006] cannot be read: it is no regular file | replace it by a regular file that can be read, or remove it",
        ],
    ),
    "a device instead of values": (
        instead(VALUES, link("/dev/zero")),
        [
            "components/alpha/values.yaml:1:1: [BC1206] `values.yaml` leads out of the component's folder | move the file into the component's folder, and name it relative to that",
        ],
    ),
    "a name that is not UTF-8": (
        instead("overlays/l\udcff.yaml", lambda path: path.write_text("x")),
        [
            "overlays/l\ufffd.yaml:1:1: [BC1202] the file's name is not UTF-8 | rename it",
        ],
    ),
    "a name with a line break": (
        instead("overlays/a\nb.yaml", lambda path: path.write_text(FILES[LEAF])),
        [
            "overlays/a b.yaml:3:18: [BC1201] metadata.name is `leaf`, but the name of the file or folder makes it `a b` | rename a b.yaml",
        ],
    ),
}


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """What reads a pipe or a device for ever fails instead."""

    def over(*_: object) -> None:
        raise TimeoutError("it reads for ever")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The valid catalog with its out/."""
    root = write_catalog(tmp_path_factory.mktemp("valid"))
    assert bundlec("build", "--all", cwd=root).status == 0
    return root


@pytest.fixture
def catalog(built: Path, tmp_path: Path) -> Path:
    """A copy of it, to break."""
    return shutil.copytree(built, tmp_path / "catalog")


@pytest.mark.parametrize("name", [*TEN, *MORE])
def test_a_broken_catalog(catalog: Path, name: str):
    change, findings = {**TEN, **MORE}[name]
    before = state(catalog / "out")
    apply(catalog, change)
    ran = bundlec("build", "--all", cwd=catalog)
    assert told(ran.err) == findings
    assert all(" | " in finding for finding in findings), "every finding says what to do"
    number = f"{len(findings)} error{'s' if len(findings) != 1 else ''}"
    assert (ran.status, ran.out, ran.err.splitlines()[-1]) == (1, "", f"{number}; nothing was written")
    assert state(catalog / "out") == before


def test_the_ten_are_ten():
    assert len(TEN) == 10


def test_every_fault_of_a_stage_is_told_at_once(catalog: Path):
    """Load: files of all kinds, what is no YAML beside what is no overlay; and a file's own faults all together."""
    write_catalog(
        catalog,
        {
            LEAF: lambda text: replaced("base: base", "base: bose")(replaced("[beta]", "[betta]")(text)),
            VALUES: appended("flag: yes\nimage: {}\n"),
            ALPHA: replaced("aliases:", "aliasses:"),
            WIDGET: replaced("size: 3", "size: [3"),
            TUNED: replaced("value: ubuntu", "value: 24.04"),
        },
    )
    ran = bundlec("build", "--all", cwd=catalog)
    assert [line.partition("]")[0] + "]" for line in told(ran.err)] == [
        "components/alpha/component.yaml:5:3: [BC1101]",
        "components/alpha/values.yaml:6:7: [BC1003]",
        "components/alpha/values.yaml:7:1: [BC1002]",
        "components/beta/manifests/widget.yaml:7:1: [BC1001]",
        "mixins/tuned.yaml:6:36: [BC1102]",
        "overlays/leaf.yaml:5:9: [BC1204]",
        "overlays/leaf.yaml:15:24: [BC1204]",
    ]


def test_every_bundle_is_looked_at_and_a_common_fault_told_once(catalog: Path):
    """Resolution: both bundles fail, and neither hides the other's faults."""
    write_catalog(
        catalog,
        {
            WORKSPACE: appended(
                "    - {name: two, recipe: leaf, profile: {mode: fancey}}\n    - {name: three, recipe: laef}\n"
            ),
            LEAF: replaced("dependencyRefs: [beta]", "dependencyRefs: [beta, gamma]"),
        },
    )
    ran = bundlec("build", "--all", cwd=catalog)
    assert told(ran.err) == [
        "bundlec.yaml:8:49: [BC2007] profile `mode` has no value `fancey` | did you mean `fancy`?",
        "bundlec.yaml:9:29: [BC2001] there is no recipe `laef` | did you mean `leaf`?",
        "overlays/leaf.yaml:15:30: [BC3002] components wait for each other: gamma -> gamma | remove one of these dependencies",
    ]
    assert "note: in bundle three" in ran.err
    assert not (catalog / "out/two").exists()


def test_a_file_that_may_not_be_read(catalog: Path, monkeypatch: pytest.MonkeyPatch):
    """As root reads every file, the system's answer is put in its place."""
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "values.yaml":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ran = bundlec("build", "--all", cwd=catalog)
    assert [line.partition(" | ")[0] for line in told(ran.err)] == [
        "components/alpha/values.yaml:1:1: [BC1006] cannot be read: Permission denied",
        "components/beta/values.yaml:1:1: [BC1006] cannot be read: Permission denied",
    ]


@pytest.mark.parametrize("name", ["components/beta/manifests", "components", "overlays"])
def test_a_folder_that_is_gone(catalog: Path, name: str):
    shutil.rmtree(catalog / name)
    before = state(catalog / "out")
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 1
    assert told(ran.err)
    assert state(catalog / "out") == before
