"""The order proof: whether the files of a bundle hold every edge and gate that its inventory promises."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compiler.emit import emitter, gatelib
from compiler.emit.inventory import FILE, Inventory, read_inventory
from compiler.errors import Collector, Diagnostic, UserError
from compiler.graph import describe
from compiler.model import DEPLOYERS, PIECES, Edge, Files, Gate, Wiring
from compiler.source import Span
from compiler.yamlio import load_all

CHECKSUMS = "checksums.txt"

# The file of each deployer that everything else hangs from.
_ENTRY: Mapping[str, str] = {
    "deploy.sh": "deploy.sh",
    "helmfile": "helmfile.yaml",
    "argocd": "argocd/root.yaml",
    "flux": "flux/root.yaml",
}

_LINE = re.compile(r"(?P<sum>[0-9a-f]{64})  (?P<path>[^\n]+)")
_OBJECTS = re.compile(r"(namespaces|argocd|flux|components/[^/]+/manifests)/.*\.yaml")


def prove(inventory: Inventory, wirings: Mapping[str, Wiring]) -> tuple[Diagnostic, ...]:
    """Every release, edge, gate and condition of a removal that the wiring of a deployer does not hold (BC6001).

    An edge is held when a chain of the deployer's own order leads from the provider to the dependant, and, when it is
    hard, the dependant's gate is there with all of its checks. On Argo CD the chain may be soft (waves between
    Applications): what makes an edge hard there is the guard in front of the dependant. Releases are removed in reverse
    order, each behind the conditions that the inventory names.
    """
    found = Collector()
    gates = {gate.id: gate for gate in inventory.gates}
    for edge in inventory.edges:
        if edge.hard and edge.dependant not in gates:
            found.error(
                "BC6001",
                f"{_edge(edge)} needs a gate in front of {edge.dependant}, and {FILE} holds none",
                Span(FILE),
            )
    for deployer in sorted(wirings, key=DEPLOYERS.index):
        _Order(deployer, wirings[deployer], found).check(inventory)
    return tuple(found.found)


def verify(files: Files) -> tuple[Diagnostic, ...]:
    """Everything that is wrong with a bundle as it lies on disk; empty when it is what was built and holds its order.

    Checksums, closed-world (BC6002, BC6003), YAML that does not parse (BC1xxx), objects without identity (BC3008), and
    the order proof of every deployer whose files are there (BC6001). BC6004 when it is not a bundle at all.
    """
    found = Collector()
    try:
        inventory = read_inventory(files)
    except UserError as error:
        return error.diagnostics
    _check_sums(files, found)
    _check_yaml(files, found)
    if hashlib.sha256(files.get("recipe.yaml", b"")).hexdigest() != inventory.recipe_digest:
        found.error("BC6002", f"recipe.yaml is not the one that {FILE} was made with", Span("recipe.yaml"))
    wirings: dict[str, Wiring] = {}
    for deployer in DEPLOYERS:
        entry = _ENTRY[deployer]
        if entry not in files:
            if deployer in inventory.deployers:
                found.error("BC6003", f"{entry} is missing: the bundle was built for {deployer}", Span(entry))
            continue
        try:
            wirings[deployer] = emitter(deployer).read_back(files)
        except UserError as error:
            found.found.extend(error.diagnostics)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            found.error("BC6001", f"the files of {deployer} cannot be understood: {error!r}", Span(entry))
    found.found.extend(prove(inventory, wirings))
    return tuple(dict.fromkeys(found.found))


class _Order:
    """The check of one deployer."""

    def __init__(self, deployer: str, wiring: Wiring, found: Collector) -> None:
        self.deployer = deployer
        self.wiring = wiring
        self.found = found
        pairs = wiring.hard | wiring.soft if deployer == "argocd" else wiring.hard
        self.before = _closure(pairs, wiring.releases)

    def check(self, inventory: Inventory) -> None:
        """Report what is not held."""
        for message in self.wiring.faults:
            self.fault(message)
        present = set(self.wiring.releases)
        for release in inventory.releases:
            if release not in present:
                self.fault(f"the release {release} is not applied")
        for release in sorted(present - set(inventory.releases)):
            self.fault(f"the release {release} is applied, and {FILE} does not hold it")
        for release in self.wiring.releases:
            if release in self.before.get(release, ()):
                self.fault(f"{release} waits for itself")
        for edge in inventory.edges:
            if not self.ordered(edge.provider, edge.dependant):
                self.fault(f"{_edge(edge)} is not held")
        for gate in inventory.gates:
            self.check_gate(gate, [edge for edge in inventory.edges if edge.dependant == gate.id and edge.hard])
        if self.wiring.removal is not None:
            self.check_removal(inventory, self.wiring.removal)
        partings = self.wiring.partings
        for release, checks in inventory.teardown if partings is not None else ():
            held = (partings or {}).get(release, frozenset())
            for item in checks:
                if not gatelib.gate_tokens(item) <= held:
                    self.fault(f"the removal of {release} does not wait for: {describe(item.check)} ({item.check.id})")

    def check_removal(self, inventory: Inventory, removal: Sequence[str]) -> None:
        place = {release: number for number, release in enumerate(removal)}
        for release in inventory.releases:
            if release not in place:
                self.fault(f"the release {release} is not removed")
        for release in sorted(place.keys() - set(inventory.releases)):
            self.fault(f"the release {release} is removed, and {FILE} does not hold it")
        early = [e for e in inventory.edges if place.get(e.provider, 0) < place.get(e.dependant, 0)]
        for edge in early:
            self.fault(f"{edge.provider} is removed before {edge.dependant}, which needs it")
        # Argo CD removes whole components, so there it is the edges only.
        whole = self.deployer == "argocd" or tuple(removal) == inventory.releases[::-1]
        if not whole and not early and sorted(removal) == sorted(inventory.releases):
            self.fault("the order of removal is not the reverse of the order of deployment")

    def check_gate(self, gate: Gate, edges: Sequence[Edge]) -> None:
        held = self.wiring.guards.get(gate.id, frozenset())
        tokens = emitter(self.deployer).gate_tokens
        for item in gate.checks:
            wanted = tokens(item)
            if not wanted or not wanted <= held:
                pieces = {item.provider, *(f"{item.provider}-{piece}" for piece in PIECES)}
                needed = [f"{e.dependant} after {e.provider} (until {e.until})" for e in edges if e.provider in pieces]
                self.fault(
                    f"the gate of {gate.id} does not wait for: {describe(item.check)} ({item.check.id})"
                    + (f"; what hangs on it: {', '.join(needed)}" if needed else "")
                )
        for provider in gate.after:
            if not self.gate_behind(gate, provider):
                self.fault(f"the gate of {gate.id} is not behind {provider}")

    def ordered(self, provider: str, dependant: str) -> bool:
        return provider in self.before.get(dependant, ())

    def gate_behind(self, gate: Gate, provider: str) -> bool:
        behind = self.wiring.behind.get(gate.id)
        if behind is None:
            return self.ordered(provider, gate.id)
        return provider in behind or any(self.ordered(provider, release) for release in behind)

    def fault(self, message: str) -> None:
        self.found.error(
            "BC6001", f"{self.deployer}: {message}", Span(_ENTRY[self.deployer]), fix="build the bundle again"
        )


def _edge(edge: Edge) -> str:
    reasons = "; ".join(f"{reason.kind}: {reason.text}" for reason in edge.reasons)
    return f"{edge.dependant} after {edge.provider} (until {edge.until}; {reasons})"


def _closure(pairs: Iterable[tuple[str, str]], order: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Release -> all releases that come before it."""
    direct: dict[str, set[str]] = {}
    for provider, dependant in pairs:
        direct.setdefault(dependant, set()).add(provider)
    closure: dict[str, frozenset[str]] = {}
    for release in order:
        seen: set[str] = set()
        open_ = list(direct.get(release, ()))
        while open_:
            current = open_.pop()
            if current in seen:
                continue
            seen.add(current)
            # What is known of a release already need not be walked again.
            if current in closure:
                seen |= closure[current]
            else:
                open_.extend(direct.get(current, ()))
        closure[release] = frozenset(seen)
    return closure


def _check_sums(files: Files, found: Collector) -> None:
    sums: dict[str, str] = {}
    if CHECKSUMS not in files:
        found.error("BC6003", f"{CHECKSUMS} is missing", Span(CHECKSUMS), fix="build the bundle again")
        return
    strange: list[int] = []
    for number, line in enumerate(files[CHECKSUMS].decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            strange.append(number)
        else:
            sums[match["path"]] = match["sum"]
    if strange:  # what it says of files would be as many errors as there are files
        more = f", and {len(strange) - 1} more are none" if len(strange) > 1 else ""
        message = f"not a line of `sha256sum`{more}: nothing can be compared with it"
        found.error("BC6002", message, Span(CHECKSUMS, strange[0], 1), fix="build the bundle again")
        return
    for path in sorted(files.keys() - sums.keys() - {CHECKSUMS}):
        found.error("BC6003", f"{path} does not belong to the bundle", Span(path), fix="move it out of the bundle")
    for path in sorted(sums.keys() - files.keys()):
        found.error("BC6003", f"{path} is missing", Span(path), fix="build the bundle again")
    for path in sorted(sums.keys() & files.keys()):
        if hashlib.sha256(files[path]).hexdigest() != sums[path]:
            fix = "put the change into the sources and build the bundle again"
            found.error("BC6002", f"{path} is not what was built", Span(path), fix=fix)


def _check_yaml(files: Files, found: Collector) -> None:
    for path in sorted(files):
        if not path.endswith(".yaml") or path.startswith("examples/") or "/templates/" in path:
            continue  # text of users, and templates of Helm
        try:
            documents = load_all(files[path].decode(), path)
        except UserError as error:
            found.found.extend(error.diagnostics)
            continue
        except UnicodeDecodeError:
            found.error("BC1001", f"{path} is not UTF-8", Span(path))
            continue
        if _OBJECTS.fullmatch(path):
            for document in documents:
                if not _is_object(document.data, path):
                    found.error(
                        "BC3008", f"{path} holds no object with apiVersion, kind and name", document.at().span()
                    )


def _is_object(data: Any, path: str) -> bool:
    if not isinstance(data, dict):
        return False
    if path.endswith(("/kustomization.yaml", "/name-reference.yaml", "/Chart.yaml")):
        return True
    name = data.get("metadata", {}).get("name") if isinstance(data.get("metadata"), dict) else None
    return all(isinstance(value, str) and value for value in (data.get("apiVersion"), data.get("kind"), name))
