"""Building the Workspace out of bundlec.yaml."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable
from typing import Any

from compiler.load.node import Node
from compiler.load.overlay import criteria_of
from compiler.load.parts import Parts
from compiler.model import BundleEntry, Workspace
from compiler.source import Origin

FILE = "bundlec.yaml"
_SETTINGS = (
    "deployers",
    "git",
    "argocd",
    "flux",
    "helm",
    "helmfile",
    "gates",
    "placement",
    "storage",
    "mirrors",
    "lint",
)


def build_workspace(root: Node, parts: Parts) -> Workspace:
    """The workspace that `root` (a valid bundlec.yaml) describes. BC1203 for bundle names and prefixes used twice,
    BC1206 for an `out` that cannot be.
    """
    spec = root.down("spec")
    bundles = [_bundle(node) for node in spec.items("bundles")]
    _once(((b.name, b.origin.down("name"), b.name) for b in bundles), "bundles have the name", parts)
    _once(((b.prefix or b.name, b.origin, b.name) for b in bundles), "bundles have the prefix", parts)
    _check_out(spec, parts)
    return Workspace(
        origin=root.origin,
        out=spec.get("out", "out"),
        bundles={b.name: b for b in bundles},
        settings=_settings(spec),
        policies=parts.assertions(spec, "policies"),
    )


def _check_out(spec: Node, parts: Parts) -> None:
    # BC1206 for a folder that no system takes, or whose files the next build would read as sources.
    written = str(spec.get("out", "out"))
    first = posixpath.normpath(written).split("/")[0]
    why = None
    if any(unicodedata.category(letter) == "Cc" for letter in written):
        why = "is no name of a folder"
    elif first in ("overlays", "mixins", "components"):
        why = f"lies among the sources below {first}/, and would be read as one of them"
    if why is not None:
        fix = "name a folder of its own, such as `out`"
        parts.found.error("BC1206", f"`{written}` {why}", spec.origin.down("out"), fix=fix)


def _bundle(node: Node) -> BundleEntry:
    return BundleEntry(
        name=node.data["name"],
        origin=node.origin,
        recipe=node.get("recipe"),
        criteria=criteria_of(node.get("criteria", {})),
        prefix=node.get("prefix"),
        profile=node.get("profile", {}),
        inputs=node.get("inputs", {}),
        set=node.get("set", {}),
        disable=tuple((n.data["component"], n.data["reason"]) for n in node.items("disable")),
        settings=_settings(node),
        cluster=node.get("cluster"),
    )


def _settings(node: Node) -> dict[str, Any]:
    return {key: node.data[key] for key in _SETTINGS if node.get(key) is not None}


def _once(names: Iterable[tuple[str, Origin, str]], what: str, parts: Parts) -> None:
    seen: dict[str, tuple[Origin, str]] = {}
    for name, origin, bundle in names:
        if name in seen:
            first, other = seen[name]
            if what.endswith("prefix") and other == bundle:
                continue  # two bundles of one name were reported already
            parts.found.error(
                "BC1203", f"two {what} `{name}`", origin, notes=((first, "here first"),), fix="give one of them another"
            )
        else:
            seen[name] = (origin, bundle)
