"""Two lines of the sources change together: each difference names the line that it names when its line changes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from compiler.review.diff.model import Place, Report
from compiler.review.diff.report import Side, report
from compiler.review.diff.sides import compiled
from compiler.review.diff.sources import Sources
from tests.review.edits import base
from tests.support.scratch import API

GAMMA = (
    API
    + """\
kind: Component
metadata: {name: gamma}
spec:
  namespace:
    name: gamma-system
    labels:
      team: one
      pod-security.kubernetes.io/enforce: baseline
  chart:
    repository: oci://registry.example.org/charts
    name: gamma
    version: v4.5.6
  crds:
    - name: gadgets.example.org
      kind: Gadget
      scope: Namespaced
      from: templates
      keep: true
    - name: gizmos.example.org
      kind: Gizmo
      scope: Namespaced
      from: crds
      upgrade: apply
  checks:
    up: {deployment: {name: gamma}}
    agent: {daemonset: {name: agent}}
    answers: {webhook: {service: gamma}}
    gadgets: {crd: gadgets.example.org}
  readiness:
    api:
      checks: [gadgets, answers]
      timeout: 2m
    ready:
      checks:
        - up
        - agent
      timeout: 3m
      onTimeout: fail
      scope: always
  needs:
    - component: alpha
      reason: it watches widgets
  singleton:
    - {group: example.org, kind: Gadget, name: main}
    - {group: example.org, kind: Gizmo, name: main}
  teardown:
    keepCRDs: true
    stuck:
      - group: example.org
        kind: Gadget
        finalizer: example.org/hold
        commands: ["kubectl delete gadgets --all"]
  install:
    timeout: 9m
    waitForJobs: true
  drift:
    - group: apps
      kind: Deployment
      paths: [/spec/replicas]
      reason: scaled by another
    - group: apps
      kind: DaemonSet
      paths: [/spec/template]
      reason: patched by another
  hooks:
    - event: post-install
      name: gamma-test
      effect: waits for the API
    - event: pre-delete
      name: gamma-clean
      effect: deletes the gadgets
  prerequisites:
    - id: disk
      text: Two disks in each node.
    - id: net
      text: A fast network.
  operations:
    - Look at the gadgets.
    - Look at the gizmos.
  scheduling:
    system:
      nodeSelector: [place]
      tolerations: [tolerate]
    accelerated:
      tolerations: [agent.tolerate]
"""
)
LEAF_MORE = """\
  knownGaps:
    - Nothing counts.
    - Nothing ends.
  prerequisites:
    - id: racks
      text: Two racks.
    - id: rows
      text: One row.
  operations:
    - Look at the nodes.
    - Look at the racks.
"""
SETTINGS = """\
  gates:
    poll: 4s
    job:
      image: registry.example.org/kubectl:1.30
  helm:
    minVersion: 3.19.0
  placement:
    system:
      nodeSelector:
        pool: system
      tolerations:
        - key: system
          operator: Exists
    accelerated:
      tolerations:
        - key: gpu
          operator: Exists
"""
_GAMMA, _LEAF, _WORKSPACE = "components/gamma/component.yaml", "overlays/leaf.yaml", "bundlec.yaml"

EDITS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        name: (file, old, new)
        for file, edits in {
            _GAMMA: {
                "version": ("v4.5.6", "v4.5.7"),
                "gadgets kept": ("      keep: true\n", "      keep: false\n"),
                "gizmos upgraded": ("      upgrade: apply\n", "      upgrade: never\n"),
                "up": ("{name: gamma}}\n    agent", "{name: gamma-server}}\n    agent"),
                "agent": ("{name: agent}", "{name: gamma-agent}"),
                "answers": ("{service: gamma}", "{service: gamma-webhook}"),
                "api checks": ("[gadgets, answers]", "[gadgets]"),
                "api timeout": ("timeout: 2m", "timeout: 4m"),
                "ready checks": ("        - agent\n", "        - agent\n        - answers\n"),
                "ready timeout": ("timeout: 3m", "timeout: 5m"),
                "on timeout": ("onTimeout: fail", "onTimeout: warn"),
                "scope": ("scope: always", "scope: install"),
                "need": ("it watches widgets", "it counts widgets"),
                "gadget alone": ("kind: Gadget, name: main", "kind: Gadget, name: first"),
                "gizmo alone": ("kind: Gizmo, name: main", "kind: Gizmo, name: first"),
                "keep CRDs": ("keepCRDs: true", "keepCRDs: false"),
                "finalizer": ("example.org/hold", "example.org/wait"),
                "namespace": ("name: gamma-system", "name: gammas"),
                "team": ("team: one", "team: two"),
                "pod security": ("enforce: baseline", "enforce: privileged"),
                "repository": ("registry.example.org/charts", "registry.example.org/mirror"),
                "install timeout": ("timeout: 9m", "timeout: 8m"),
                "wait for jobs": ("    waitForJobs: true\n", ""),
                "drift path": ("[/spec/replicas]", "[/spec/replicas, /spec/paused]"),
                "drift reason": ("patched by another", "patched by its operator"),
                "hook effect": ("waits for the API", "waits for its API"),
                "hook event": ("event: pre-delete", "event: post-delete"),
                "disk": ("Two disks", "Three disks"),
                "net": ("A fast network", "A faster network"),
                "gadget words": ("Look at the gadgets.", "Look at all gadgets."),
                "gizmo words": ("Look at the gizmos.", "Look at all gizmos."),
                "selector path": ("[place]", "[place, other.place]"),
                "toleration path": ("[tolerate]", "[tolerate, other.tolerate]"),
                "agent path": ("[agent.tolerate]", "[agent.more.tolerate]"),
            },
            _LEAF: {
                "tag": ('tag: "1.0"', 'tag: "1.1"'),
                "gap": ("Nothing counts.", "Nothing counts here."),
                "another gap": ("Nothing ends.", "Nothing ends here."),
                "racks": ("Two racks", "Three racks"),
                "rows": ("One row", "Two rows"),
                "node words": ("Look at the nodes.", "Look at all nodes."),
                "rack words": ("Look at the racks.", "Look at all racks."),
                "plain": ("overrides: {fancy: false}", "overrides: {fancy: no-more}"),
                "plain label": ('value: "!fancy"', 'value: "!fancier"'),
                "until": ("until: ready", "until: api"),
                "effect": ("{acid: 7}", "{acid: 8}"),
            },
            _WORKSPACE: {
                "poll": ("poll: 4s", "poll: 9s"),
                "image": ("kubectl:1.30", "kubectl:1.31"),
                "helm": ("minVersion: 3.19.0", "minVersion: 3.19.2"),
                "pool": ("pool: system", "pool: infra"),
                "system taint": ("key: system", "key: infra"),
                "gpu taint": ("key: gpu", "key: nvidia"),
                "interval": ("interval: 2m", "interval: 7m"),
                "branch": ("revision: main", "revision: prod"),
            },
        }.items()
        for name, (old, new) in edits.items()
    }
)
SILENT = {"gadgets kept", "api checks", "api timeout", "wait for jobs", "drift reason", "hook event"}
"""Edits of what no bundle shows, be it alone or beside another one."""
Compiled = tuple[Side, dict[str, str]]


class Sides:
    """The side that some edits give; each is compiled once."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.factory = factory
        self.known: dict[frozenset[str], Compiled] = {}

    def __call__(self, *names: str) -> Compiled:
        key = frozenset(names)
        if key not in self.known:
            files = base() | {_GAMMA: GAMMA}
            files[_LEAF] = files[_LEAF].replace("  operations: [Look at the nodes.]\n", LEAF_MORE)
            files[_WORKSPACE] = files[_WORKSPACE].replace("  gates: {poll: 4s}\n", SETTINGS)
            for file, old, new in (EDITS[name] for name in names):
                assert files[file].count(old) == 1, (old, file)
                files[file] = files[file].replace(old, new)
            folder = self.factory.mktemp("side")
            for file, content in files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(content)
            self.known[key] = compiled(folder, (), "a side")
        return self.known[key]

    def diff(self, *names: str) -> Report:
        """The report from the base to the side that the edits give."""
        (old, before), (new, after) = self(), self(*names)
        assert [*old.errors, *old.broken, *new.errors, *new.broken.values()] == []
        return report(old, new, Sources(before, after), "bundlec diff")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """The side that some edits give; each is compiled once."""
    return Sides(tmp_path_factory)


def told(found: Report) -> dict[Any, str | None]:
    """Every difference -> the text of the line that is its cause. Line numbers move with lines above; texts do not."""
    result: dict[Any, str | None] = {}

    def put(at: Place | None, *key: Any) -> None:
        result[tuple(map(repr, key))] = f"{at.file}: {at.text}" if at is not None else None

    for bundle in found.bundles:
        for entry in bundle.fields:
            put(entry.at, bundle.name, entry.change)
        for order in bundle.order:
            if order.kind != "order":
                put(order.at, bundle.name, order.text)
        for risk in bundle.risks:
            if risk.at is not None:
                put(risk.at, bundle.name, "risk", risk.text)
        for component in bundle.components:
            for entry in (*component.values, *component.fields):
                put(entry.at, bundle.name, component.name, entry.change)
            for item in component.objects:
                put(item.at, bundle.name, component.name, item.title, item.hunk)
    return result


def causes(found: Report) -> Counter[str]:
    return Counter(f"{c.place.file}: {c.place.text}" for c in found.causes)


@pytest.mark.parametrize("name", EDITS)
def test_each_line_alone_is_the_cause_of_all_that_it_does(sides: Sides, name: str):
    file, old, new = EDITS[name]
    found = sides.diff(name)
    assert found.differs == (name not in SILENT)
    assert [key for key, place in told(found).items() if place is None] == []
    if found.differs:
        (line,) = causes(found)
        assert line.startswith(f"{file}: ")
        changed = {part.strip() for text in (old, new) for part in text.split("\n") if part.strip()}
        assert any(part in line for part in changed)


@pytest.mark.parametrize("file", [_GAMMA, _LEAF, _WORKSPACE])
@pytest.mark.parametrize("apart", [1, 6])
def test_the_causes_of_two_lines_of_one_file_are_those_of_each(sides: Sides, file: str, apart: int):
    """Of lines that are next to each other, and of some that are far apart."""
    names = [name for name, edit in EDITS.items() if edit[0] == file]
    wrong = []
    for pair in zip(names, names[apart:], strict=False):
        alone = [sides.diff(name) for name in pair]
        both = sides.diff(*pair)
        left, right = map(told, alone)
        wanted = causes(alone[0]) | causes(alone[1])
        if causes(both) != wanted:
            wrong.append(f"{pair}: hidden {sorted(wanted - causes(both))}; false {sorted(causes(both) - wanted)}")
        for key, place in told(both).items():
            own = {known[key] for known in (left, right) if key in known}
            if place is None or (len(own) == 1 and (key not in left or key not in right) and place not in own):
                wrong.append(f"{pair}: {key} is said to follow from {place} instead of {own}")
    assert wrong == []
