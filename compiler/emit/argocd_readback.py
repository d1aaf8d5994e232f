"""Argo CD: the order that the emitted files hold, read from the files alone."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from compiler.emit import argocd_remove
from compiler.emit.argocd_apps import APPS, WAVES_HOLD
from compiler.emit.argocd_guards import HOOK
from compiler.emit.argocd_site import WAVE
from compiler.emit.argocd_steps import token
from compiler.model import Files, Wiring
from compiler.records import dataclass
from compiler.yamlio import load


@dataclass(frozen=True)
class _Piece:
    """A release of an Application, and the waves of its objects; none when it brings no object."""

    release: str
    waves: frozenset[int]


@dataclass(frozen=True)
class _Guard:
    """A hook Job: what it waits for, and the wave that it belongs to; None: before all of them."""

    wave: int | None
    tokens: frozenset[str]


@dataclass(frozen=True)
class _Application:
    name: str
    wave: int
    pieces: tuple[_Piece, ...]
    guards: tuple[_Guard, ...]


def read_back(files: Files) -> Wiring:
    """Hard pairs: pieces of one Application whose waves differ. Soft pairs: pieces of Applications of adjacent waves.

    The latter are hard when the root says that Argo CD judges the health of Applications. A PreSync hook guards all
    pieces of its Application, a Sync hook those of later waves. The order of removal is that of `argocd/remove.sh`, and
    inside an Application that of its waves, the last one first. What the root does not lead to counts for nothing.
    """
    root = _read(files, "argocd/root.yaml")
    path = posixpath.normpath(root["spec"]["source"]["path"])
    base = path.removesuffix(APPS).rstrip("/")
    tree = _Tree(files, base)
    applications = [_application(tree, item) for item in tree.folder(APPS if path == tree.outside(APPS) else None)]
    hard = {pair for application in applications for pair in _inner(application.pieces)}
    between = set(_between(applications))
    guards: dict[str, set[str]] = {}
    for application in applications:
        for guard in application.guards:
            for piece in application.pieces:
                if guard.wave is None or (piece.waves and min(piece.waves) > guard.wave):
                    guards.setdefault(piece.release, set()).update(guard.tokens)
    if root["metadata"].get("annotations", {}).get(WAVES_HOLD) == "health":
        hard, between = hard | between, set()
    ordered = sorted(applications, key=lambda a: a.wave)
    removal, partings = _removal(files, applications)
    return Wiring(
        tuple(piece.release for application in ordered for piece in application.pieces),
        frozenset(hard),
        frozenset(between),
        {release: frozenset(held) for release, held in guards.items() if held},
        removal=removal,
        partings=partings,
    )


class _Tree:
    """The YAML files of a bundle by folder, and the folder of the bundle in the repository."""

    def __init__(self, files: Files, base: str) -> None:
        self._files = files
        self._base = base
        self._names: dict[str, list[str]] = {}
        for name in sorted(files):
            if name.endswith(".yaml"):
                self._names.setdefault(posixpath.dirname(name), []).append(name)

    def outside(self, folder: str) -> str:
        """A folder of the bundle as a path of the repository."""
        return posixpath.join(self._base, folder)

    def inside(self, path: str | None) -> str | None:
        """A path of the repository as one of the bundle; None when it leads elsewhere."""
        if path is None:
            return None
        inside = posixpath.relpath(path, self._base) if self._base else posixpath.normpath(path)
        return None if inside.split("/")[0] == ".." else inside

    def folder(self, folder: str | None) -> list[Mapping[str, Any]]:
        """The objects of a folder of the bundle, by file name."""
        return [_read(self._files, name) for name in self._names.get(folder, ())] if folder else []


def _application(tree: _Tree, document: Mapping[str, Any]) -> _Application:
    spec = document["spec"]
    pieces: list[_Piece] = []
    guards: list[_Guard] = []
    for source in spec.get("sources") or [spec["source"]]:
        folder = tree.inside(source.get("path"))
        release = source.get("helm", {}).get("releaseName")
        if release is None:
            guards += [guard for item in tree.folder(folder) for guard in _guards(item)]
        elif "chart" in source:
            pieces.append(_Piece(release, frozenset({0})))
        else:
            waves = (_wave(item) for item in tree.folder(f"{folder}/manifests"))
            pieces.append(_Piece(release, frozenset(waves)))
    return _Application(document["metadata"]["name"], _wave(document), tuple(pieces), tuple(guards))


def _removal(files: Files, applications: Iterable[_Application]) -> tuple[tuple[str, ...], dict[str, frozenset[str]]]:
    pieces = {application.name: application.pieces for application in applications}
    releases: list[str] = []
    partings: dict[str, frozenset[str]] = {}
    for name, held in argocd_remove.read_back(files):
        mine = sorted(pieces.get(name, ()), key=lambda piece: max(piece.waves, default=0), reverse=True)
        releases += (piece.release for piece in mine)
        partings.update(held)
    return tuple(releases), partings


def _guards(item: Mapping[str, Any]) -> Iterable[_Guard]:
    hook = item["metadata"].get("annotations", {}).get(HOOK)
    if item["kind"] != "Job" or hook not in {"PreSync", "Sync"}:
        return
    pod = item["spec"]["template"]["spec"]
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    held = frozenset(token(container.get("args", ())) for container in containers)
    yield _Guard(None if hook == "PreSync" else _wave(item), held)


def _inner(pieces: Iterable[_Piece]) -> Iterable[tuple[str, str]]:
    full = [piece for piece in pieces if piece.waves]
    for before in full:
        for after in full:
            if max(before.waves) < min(after.waves):
                yield before.release, after.release


def _between(applications: Iterable[_Application]) -> Iterable[tuple[str, str]]:
    by_wave: dict[int, list[str]] = {}
    for application in applications:
        by_wave.setdefault(application.wave, []).extend(piece.release for piece in application.pieces)
    filled = [by_wave[wave] for wave in sorted(by_wave) if by_wave[wave]]
    for earlier, later in pairwise(filled):
        for before in earlier:
            for after in later:
                yield before, after


def _read(files: Files, name: str) -> Mapping[str, Any]:
    data: Mapping[str, Any] = load(files[name].decode(), name).data
    return data


def _wave(item: Mapping[str, Any]) -> int:
    return int(item["metadata"].get("annotations", {}).get(WAVE, "0"))
