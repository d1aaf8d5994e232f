"""Versions that mean something else tomorrow: chart ranges, images without a tag or with a moving one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compiler.errors import Diagnostic
from compiler.model import Catalog, Plan
from compiler.paths import lookup
from compiler.review.explain.recipe import refs
from compiler.review.explain.value import winner
from compiler.review.lint.everything import Compiled
from compiler.source import Origin, Path, dotted, parse_path

_PINNED = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")
_NO_TAG = "has no tag"
_MOVING = frozenset({"latest", "main", "master", "edge", "nightly", "stable", "dev", "devel"})


def floating(catalog: Catalog, compiled: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """BC7004 for charts, images of our own manifests, declared images and tags among values that are not pinned."""
    seen: dict[tuple[str, str], Diagnostic] = {}

    def report(message: str, origin: Origin | None, fix: str) -> None:
        if origin is not None:
            finding = Diagnostic("BC7004", message, origin.span(), fix, "warning")
            seen.setdefault((str(finding.span), message), finding)

    for component in catalog.components.values():
        if component.chart is not None and not _PINNED.fullmatch(component.chart.version):
            at = component.origin.down("spec", "chart", "version")
            report(f"chart version `{component.chart.version}` of `{component.name}` is a range", at, _CHART)
    for item in compiled:
        plan = item.plan
        for _, ref in refs(catalog, plan.recipe):
            if ref.version is not None and not _PINNED.fullmatch(ref.version):
                at = ref.origin.down("version")
                report(f"chart version `{ref.version}` of `{ref.name}` is a range", at, _CHART)
        image = plan.settings.gates.image
        if _floats(image):
            at = catalog.workspace.origin.down("spec", "gates", "job", "image")
            report(f"the image of gate Jobs, `{image}`, {_floats(image)}", at, _IMAGE)
        for message, origin in (*_objects(plan), *_values(plan)):
            report(message, origin, _IMAGE)
    yield from seen.values()


_CHART = 'write one version, such as "1.2.3": a range gives another chart on another day'
_IMAGE = "write a version's tag, or a digest"


def _objects(plan: Plan) -> Iterator[tuple[str, Origin | None]]:
    for release in plan.releases:
        for made in release.objects:
            for image in _images(made.data):
                why = _floats(image)
                if why:
                    yield f"image `{image}` of {made.kind} {made.name} {why}", made.origin


def _images(data: Any) -> Iterator[str]:
    """Images of containers, wherever a pod template stands."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key in ("containers", "initContainers", "ephemeralContainers") and isinstance(value, list):
                for container in value:
                    if isinstance(container, Mapping) and isinstance(container.get("image"), str):
                        yield container["image"]
            yield from _images(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from _images(value)


def _values(plan: Plan) -> Iterator[tuple[str, Origin | None]]:
    for component in plan.recipe.enabled():
        for image in component.component.images:
            path = parse_path(image["path"])
            value = lookup(component.values, path)
            why = _floats(value) if isinstance(value, str) and value and image.get("form") == "ref" else None
            if why == _NO_TAG and _pinned_beside(component.values, path):
                why = None
            entry = winner(component, path) if why else None
            if entry is not None:
                yield f"image `{value}` at `{component.name}:{dotted(path)}` {why}", entry.origin
        for path, value in _tags(component.values):
            entry = winner(component, path)
            if entry is not None:
                yield f"`{component.name}:{dotted(path)}: {value}` moves", entry.origin


def _tags(data: Any, at: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            if isinstance(value, str) and key.lower().endswith(("tag", "version")) and value in _MOVING:
                yield (*at, key), value
            yield from _tags(value, (*at, key))


def _pinned_beside(values: Any, path: Path) -> bool:
    """Whether the map that holds an image also holds its tag, version or digest."""
    around = lookup(values, path[:-1])
    if not isinstance(around, Mapping):
        return False
    pins = (str(value) for key, value in around.items() if key.lower().endswith(("tag", "version", "sha", "digest")))
    return any(pin and pin not in _MOVING for pin in pins)


def _floats(image: str) -> str | None:
    """Why the reference of an image floats; None when it is pinned."""
    if "@" in image:
        return None
    tag = image.rpartition("/")[2].partition(":")[2]
    if not tag:
        return _NO_TAG
    return "has a moving tag" if tag in _MOVING else None
