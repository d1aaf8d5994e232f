"""The order proof and `verify`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from compiler.emit import bundle, emit, flux, payload
from compiler.emit.inventory import inventory_of
from compiler.model import Plan, Wiring
from compiler.proof import prove, verify
from tests.support.plans import settings, small_plan

PLAN = small_plan()
INVENTORY = inventory_of(PLAN)
GUARDS = {r.id: frozenset(t for c in r.gate.checks for t in flux.tokens(c.check)) for r in PLAN.releases if r.gate}
PAIRS = frozenset((e.provider, e.dependant) for e in PLAN.edges)
ORDER = tuple(r.id for r in PLAN.releases)


def wiring(
    hard: frozenset[tuple[str, str]] = PAIRS,
    soft: frozenset[tuple[str, str]] = frozenset(),
    guards: Mapping[str, frozenset[str]] = GUARDS,
    releases: tuple[str, ...] = ORDER,
) -> Wiring:
    return Wiring(releases, hard, soft, guards)


def messages(found: Wiring) -> list[str]:
    result = prove(INVENTORY, {"flux": found})
    assert {d.code for d in result} <= {"BC6001"}
    return [d.message for d in result]


def test_what_is_held_is_proved() -> None:
    assert messages(wiring()) == []


def test_order_may_lead_through_others() -> None:
    chain = frozenset(itertools.pairwise(ORDER))
    assert messages(wiring(chain)) == []


@pytest.mark.parametrize("pair", sorted(PAIRS))
def test_every_missing_edge_is_named(pair: tuple[str, str]) -> None:
    found = messages(wiring(PAIRS - {pair}))
    assert any(f"{pair[1]} after {pair[0]} (until " in message for message in found)


def test_a_soft_order_counts_on_argo_cd_only() -> None:
    soft = wiring(frozenset(), PAIRS)
    assert len(messages(soft)) >= len(PAIRS)
    assert [d for d in prove(INVENTORY, {"argocd": soft}) if "is not held" in d.message] == []


@pytest.mark.parametrize("release", sorted(GUARDS))
def test_every_missing_check_is_named(release: str) -> None:
    for token in GUARDS[release]:
        found = messages(wiring(guards={**GUARDS, release: GUARDS[release] - {token}}))
        assert len(found) == 1
        assert found[0].startswith(f"flux: the gate of {release} does not wait for: ")
    missing = {key: value for key, value in GUARDS.items() if key != release}
    assert len(messages(wiring(guards=missing))) == len(GUARDS[release])


def test_a_hard_edge_without_a_gate_is_named() -> None:
    inventory = replace(INVENTORY, gates=INVENTORY.gates[1:])
    (found,) = prove(inventory, {})
    assert "needs a gate in front of gpu-operator-pre" in found.message


def test_releases_must_be_the_same() -> None:
    assert messages(wiring(releases=ORDER[:-1]))[0] == "flux: the release sriov-ib-networks is not applied"
    assert messages(wiring(releases=(*ORDER, "x"))) == [
        "flux: the release x is applied, and bundle.yaml does not hold it"
    ]


def test_a_circle_is_named() -> None:
    found = messages(wiring(PAIRS | {("sriov-ib-networks", "network-operator")}))
    assert "flux: network-operator waits for itself" in found


def test_a_gate_must_be_behind_what_it_watches() -> None:
    gates = tuple(replace(g, after=("kai-scheduler",)) if g.id == "sriov-ib-networks" else g for g in INVENTORY.gates)
    (found,) = prove(replace(INVENTORY, gates=gates), {"flux": wiring()})
    assert found.message == "flux: the gate of sriov-ib-networks is not behind kai-scheduler"


# --- verify ----------------------------------------------------------------------------------------------------------


def built() -> dict[str, bytes]:
    plan: Plan = replace(PLAN, recipe=replace(PLAN.recipe, settings=settings(deployers=("flux",))))
    files: dict[str, bytes] = dict(payload.emit(plan))
    files.update(flux.emit(plan))
    files.update(bundle.emit(plan, files))
    files["checksums.txt"] = bundle.checksums(files)
    return files


def found(files: Mapping[str, bytes]) -> list[str]:
    return [d.code for d in verify(files)]


def signed(files: dict[str, bytes]) -> dict[str, bytes]:
    files["checksums.txt"] = bundle.checksums(files)
    return files


def test_a_bundle_as_built_is_sound() -> None:
    assert verify(built()) == ()


def test_a_changed_file_is_found() -> None:
    files = built()
    files["components/gpu-operator/values.yaml"] += b"x: 1\n"
    assert found(files) == ["BC6002"]


@pytest.mark.parametrize("path", ["components/gpu-operator/values.yaml", "lib/gate"])
def test_a_missing_file_is_found(path: str) -> None:
    files = built()
    del files[path]
    assert "BC6003" in found(files)


def test_a_file_that_does_not_belong_is_found() -> None:
    assert found({**built(), "notes.txt": b""}) == ["BC6003"]


def test_checksums_must_be_there_and_well_formed() -> None:
    files = built()
    files["checksums.txt"] += b"nonsense\n"
    assert found(files) == ["BC6002"]
    del files["checksums.txt"]
    assert found(files) == ["BC6003"]


def test_a_signed_lie_is_found_by_the_proof() -> None:
    files = built()
    path = "flux/graph/sriov-ib-networks.yaml"
    files[path] = files[path].replace(b"  - name: demo-gate-sriov-ib-networks\n    namespace: flux-system\n", b"")
    assert set(found(signed(files))) == {"BC6001"}


SCRIPTS = {"deploy.sh": "undeploy.sh", "flux": "flux/remove.sh", "argocd": "argocd/remove.sh"}
LOST = "the removal of network-operator-post does not wait for: "


def everything() -> dict[str, bytes]:
    deployers = ("deploy.sh", "helmfile", "argocd", "flux")
    plan = replace(PLAN, recipe=replace(PLAN.recipe, settings=settings(deployers=deployers)))
    return dict(emit(plan))


def without(files: dict[str, bytes], path: str, pattern: str) -> tuple[dict[str, bytes], str]:
    """The files without the one line of `path` that matches, signed anew; and that line."""
    lines = files[path].decode().splitlines(keepends=True)
    (gone,) = [line for line in lines if re.match(pattern, line)]
    return signed({**files, path: "".join(line for line in lines if line is not gone).encode()}), gone


def test_removal_holds_as_built() -> None:
    assert verify(everything()) == ()


@pytest.mark.parametrize(
    "change", [("", ""), (" 1800 fail", " 1800 warn"), (" 1800 fail", " 1 fail"), ("Succeeded", "x")]
)
def test_a_lost_condition_of_a_removal_is_found(change: tuple[str, str]) -> None:
    files, line = without(everything(), "lib/gate", r" +gate_every network-operator/states-succeeded ")
    if change[0]:
        assert change[0] in line
        files = everything()
        files["lib/gate"] = files["lib/gate"].replace(line.encode(), line.replace(*change).encode())
    found = [d.message for d in verify(signed(files))]
    assert [message.split(": ", 1)[0] for message in found] == ["deploy.sh", "helmfile", "argocd", "flux"]
    assert all(LOST in message for message in found)


@pytest.mark.parametrize("deployer", sorted(SCRIPTS))
def test_a_removal_in_another_order_is_found(deployer: str) -> None:
    files, path = everything(), SCRIPTS[deployer]
    name = "component sriov-ib-networks" if deployer == "argocd" else "re(move|lease) sriov-ib-networks"
    files, line = without(files, path, f" +{name} ")
    assert f"{deployer}: the release sriov-ib-networks is not removed" in [d.message for d in verify(files)]
    start = files[path].index(b"removals() {\n")
    end = files[path].index(b"\n}\n", start) + 1
    files[path] = files[path][:end] + line.encode() + files[path][end:]
    assert f"{deployer}: network-operator-post is removed before sriov-ib-networks, which needs it" in [
        d.message for d in verify(signed(files))
    ]


def test_a_removal_order_that_breaks_no_edge_is_found_too() -> None:
    files = everything()
    head, one, two, *_ = [
        line for line in files["undeploy.sh"].decode().splitlines(keepends=True) if "  remove " in line
    ]
    swapped = (two + one).encode()
    files["undeploy.sh"] = files["undeploy.sh"].replace((one + two).encode(), swapped)
    messages = [d.message for d in verify(signed(files))]
    assert len(messages) == 1, (head, one, two)
    assert messages[0].startswith("deploy.sh: ")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("helmfile.yaml", "    - --teardown\n    - network-operator-post\n", "    - --teardown\n    - x\n"),
        ("flux/remove.sh", " no yes || return", " no no || return"),
        ("argocd/remove.sh", " no network-operator-post network-operator || return", " no network-operator || return"),
    ],
)
def test_a_removal_that_asks_no_longer_is_found(path: str, old: str, new: str) -> None:
    files = everything()
    assert old.encode() in files[path]
    files[path] = files[path].replace(old.encode(), new.encode())
    assert any(LOST in d.message for d in verify(signed(files)))


def test_another_recipe_is_found() -> None:
    files = built()
    files["recipe.yaml"] = files["recipe.yaml"].replace(b"maturity: preview", b"maturity: stable")
    assert found(signed(files)) == ["BC6002"]


def test_a_deployer_whose_files_are_gone_is_found() -> None:
    files = {path: content for path, content in built().items() if not path.startswith("flux/")}
    assert found(signed(files)) == ["BC6003"]


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("namespaces/gpu-operator.yaml", b"a: [", "BC1001"),
        ("namespaces/gpu-operator.yaml", b"kind: Namespace\n", "BC3008"),
        ("namespaces/gpu-operator.yaml", b"\xff", "BC1001"),
        ("flux/graph/gpu-operator.yaml", b"kind: Kustomization\n", "BC6001"),
        ("flux/graph/gpu-operator.yaml", b"a: [", "BC1001"),
    ],
)
def test_damaged_files_are_findings_and_no_tracebacks(path: str, content: bytes, code: str) -> None:
    assert code in found(signed({**built(), path: content}))


def test_what_is_no_bundle_is_said() -> None:
    assert found({}) == ["BC6004"]
    assert found({"bundle.yaml": b"a: 1\n"}) == ["BC6004"]
