"""A compiled bundle as the tests look at it: files in memory and on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.model import Files, Plan
from compiler.yamlio import load_all

Identity = tuple[str, str, str, str]
"""Group, kind, namespace ("" when cluster-scoped), name."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """`repo` stands for the Git repository's root; `folder` is `repo/out/<name>`."""

    name: str
    plan: Plan = field(repr=False)
    files: Files = field(repr=False)
    repo: Path
    folder: Path

    def documents(self, path: str) -> list[Any]:
        """The YAML documents of a file of the bundle."""
        return documents(self.files[path].decode(), path)

    def one(self, path: str) -> Any:
        """The only YAML document of a file of the bundle."""
        (found,) = self.documents(path)
        return found

    def values(self, release: str) -> Any:
        """The values of a remote chart."""
        return self.one(f"components/{release}/values.yaml")

    def manifests(self, release: str) -> list[Any]:
        """The objects of a local chart, read from its `manifests/`."""
        return [o for path in self.under(f"components/{release}/manifests/") for o in self.documents(path)]

    def object(self, release: str, kind: str, name: str) -> Any:
        """An object of a local chart."""
        (found,) = [o for o in self.manifests(release) if (o["kind"], o["metadata"]["name"]) == (kind, name)]
        return found

    def under(self, *prefixes: str) -> list[str]:
        """The YAML files below folders of the bundle."""
        return [p for p in self.files if p.startswith(prefixes) and p.endswith(".yaml")]

    def local_releases(self) -> list[str]:
        """The releases that have a chart in the bundle, read from the tree."""
        return [p.split("/")[1] for p in self.files if p.startswith("components/") and p.endswith("/Chart.yaml")]

    def objects(self) -> Iterator[tuple[str, Any]]:
        """Path and object of everything that ends in a cluster: our manifests, namespaces, the deployers' objects."""
        manifests = [f"components/{release}/manifests/" for release in self.local_releases()]
        for path in self.under("namespaces/", "argocd/", "flux/", *manifests):
            if path.startswith("argocd/optional/"):
                continue  # a fragment for people to merge into their argocd-cm
            for item in self.documents(path):
                if item.get("apiVersion", KUSTOMIZE) != KUSTOMIZE and not path.endswith("/Chart.yaml"):
                    yield path, item


KUSTOMIZE = "kustomize.config.k8s.io/v1beta1"
"""The API of Kustomize's own files; they never reach a cluster."""


def documents(text: str, name: str = "") -> list[Any]:
    """The YAML documents of a text, empty ones left out."""
    return [d.data for d in load_all(text, name, strict=False) if d.data is not None]


def identity(item: Any) -> Identity:
    """What makes an object the same one in a cluster."""
    group, slash, _ = item["apiVersion"].partition("/")
    meta = item["metadata"]
    return (group if slash else "", item["kind"], meta.get("namespace") or "", meta["name"])


def canonical(item: Any) -> str:
    """One text for one meaning."""
    return json.dumps(item, sort_keys=True)
