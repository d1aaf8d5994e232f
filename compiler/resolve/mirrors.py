"""Mirrors: charts, the image of gate Jobs and the images that components name, fetched from somewhere else.

`from` is a prefix that ends where a part of the address ends. `https://charts.example.com` stands for a repository of
charts; `oci://ghcr.io/nvidia` and, the same, `ghcr.io/nvidia` for what lies in a registry, charts and images alike. Of
several that match the longest wins. One that can move nothing is refused: whoever wrote it believes that it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import Catalog, Chart, Mirror, Settings
from compiler.paths import lookup
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, merge
from compiler.resolve.values import own_layers
from compiler.source import Origin, Path, parse_path

_OCI = "oci://"


def read(items: Sequence[Any], origin: Callable[[Path], Origin], collector: Collector) -> tuple[Mirror, ...]:
    """The mirrors as settings. Records BC4003 for a target that no chart can be read from, and for two of one prefix.

    `origin` tells who wrote a path of the settings.
    """
    found: dict[str, Mirror] = {}
    for index, item in enumerate(items):
        at = origin(("mirrors",)).down(index)
        source, target = _normal(item["from"]), _normal(item["to"])
        plain = bool(item.get("plainHTTP", False))
        problem = _problem(source, target, plain=plain)
        if problem:
            collector.error("BC4003", f"mirror of `{item['from']}`: {problem[0]}", at.down(problem[1]), fix=problem[2])
        elif source in found:
            message = f"`{item['from']}` has two mirrors: `{found[source].target}` and `{target}`"
            collector.error("BC4003", message, at, fix="keep one of them")
        else:
            found[source] = Mirror(source, target, plain)
    return tuple(found.values())


@dataclass
class Seen:
    """The addresses that were looked up, and the prefixes that decided about one."""

    addresses: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


def apply(
    catalog: Catalog,
    settings: Settings,
    origin: Callable[[Path], Origin],
    drafts: Mapping[str, Draft],
    collector: Collector,
) -> tuple[Settings, Mapping[str, Chart]]:
    """The settings with the gate image moved, and the charts of enabled components that are fetched from elsewhere.

    Images that a component names become a layer of its values. Records BC4005 for a mirror that nothing comes from: of
    an entry, nothing in its bundle; of the workspace, nothing in the catalog, since other bundles may have what this
    one has not.
    """
    if not settings.mirrors:
        return settings, {}
    seen = Seen()
    charts: dict[str, Chart] = {}
    for name in sorted(drafts):
        draft = drafts[name]
        if not draft.enabled:
            continue
        own = draft.component.chart
        if own is not None:
            moved = chart(own, settings.mirrors, seen)
            if moved != own:
                charts[name] = moved
        if draft.component.images:
            _images(draft, settings.mirrors, origin, seen)
    gates = replace(settings.gates, image=image(settings.gates.image, settings.mirrors, seen))
    at = origin(("mirrors",))
    for index, mirror in enumerate(settings.mirrors):
        shared = at.path[:2] == ("spec", "mirrors")
        if mirror.source not in seen.used and not (shared and _anywhere(catalog, mirror.source)):
            _report_unused(mirror, at.down(index), seen, collector)
    return replace(settings, gates=gates), charts


def chart(wanted: Chart, mirrors: Iterable[Mirror], seen: Seen) -> Chart:
    """Where a chart is fetched from; its address, and the prefix that decides, are added to `seen`."""
    # A registry holds the chart below its repository, so a prefix may name the very chart.
    address = f"{wanted.repository}/{wanted.name}" if wanted.repository.startswith(_OCI) else wanted.repository
    seen.addresses.add(address)
    mirror = _longest(address, mirrors)
    if mirror is None:
        return wanted
    seen.used.add(mirror.source)
    moved = mirror.target + address[len(mirror.source) :]
    if address != wanted.repository:
        moved, _, name = moved.rpartition("/")
        return replace(wanted, repository=moved, name=name, plain_http=mirror.plain_http)
    return replace(wanted, repository=moved, plain_http=mirror.plain_http)


def image(wanted: str, mirrors: Iterable[Mirror], seen: Seen) -> str:
    """Where an image is pulled from; nodes, not Helm, decide whether without TLS."""
    return _pulled(wanted, _OCI + _with_registry(wanted), mirrors, seen)


def _pulled(wanted: str, address: str, mirrors: Iterable[Mirror], seen: Seen) -> str:
    seen.addresses.add(address)
    mirror = _longest(address, (m for m in mirrors if m.target.startswith(_OCI)))
    if mirror is None:
        return wanted
    seen.used.add(mirror.source)
    return (mirror.target + address[len(mirror.source) :]).removeprefix(_OCI)


def _with_registry(wanted: str) -> str:
    """An image with the registry that container runtimes read into a name without one: Docker Hub."""
    first, slash, _ = wanted.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return wanted
    return f"docker.io/{wanted}" if slash else f"docker.io/library/{wanted}"


def _images(draft: Draft, mirrors: Sequence[Mirror], origin: Callable[[Path], Origin], seen: Seen) -> None:
    tree = merge([*own_layers(draft, Collector()), *draft.layers]).tree
    for item in draft.component.images:
        path = parse_path(item["path"])
        if item["form"] == "repo+tag":
            path = (*path, "repository")
        value = lookup(tree, path)
        if not isinstance(value, str) or not value:
            continue
        # Nothing is read into a repository: only its last part would tell whether it lies in Docker Hub's library.
        moved = (
            _pulled(value, _OCI + value, mirrors, seen) if item["form"] == "repository" else image(value, mirrors, seen)
        )
        if moved != value:
            data: Any = moved
            for step in reversed(path):
                data = {str(step): data}
            draft.layers.append(Layer("mirrors", data, origin(("mirrors",))))


def _normal(address: str) -> str:
    if not address.endswith("://"):
        address = address.rstrip("/")
    return address if "://" in address else _OCI + address


def _problem(source: str, target: str, *, plain: bool) -> tuple[str, str, str] | None:
    # (what is wrong, key, fix)
    for key, address in (("from", source), ("to", target)):
        scheme, _, rest = address.partition("://")
        if scheme not in ("https", "http", "oci") or not rest or rest.startswith("/"):
            fix = "write https://HOST/PATH for a repository, oci://HOST/PATH for a registry"
            return f"`{address}` is no address", key, fix
    if source.startswith(_OCI) and not target.startswith(_OCI):
        # An image cannot be pulled from a repository of charts.
        return f"`{target}` is no registry, and what is in a registry is mirrored in one", "to", "write oci://HOST/PATH"
    if plain and not target.startswith(_OCI):
        return (
            "`plainHTTP` is for registries; a repository says it by its address",
            "plainHTTP",
            "write `to: http://...`",
        )
    return None


def _report_unused(mirror: Mirror, at: Origin, seen: Seen, collector: Collector) -> None:
    shown = mirror.source.removeprefix(_OCI)
    longer = next((address for address in sorted(seen.addresses) if _begins(address, mirror.source)), None)
    if longer is not None:
        message = f"whatever comes from `{shown}`, such as `{longer.removeprefix(_OCI)}`, has another mirror"
        fix = "remove it: the longest prefix wins, and images are pulled from registries alone"
    else:
        message = f"nothing that bundlec knows of comes from `{shown}`"
        parts = shown.count("/")
        near = {"/".join(a.removeprefix(_OCI).split("/")[: parts + 1]) for a in seen.addresses}
        near |= {a.removeprefix(_OCI) for a in seen.addresses}
        fix = did_you_mean(shown, near) or "correct `from`, or remove the mirror"
        fix += "; images that only a chart names are moved in its values"
    collector.error("BC4005", message, at.down("from"), fix=fix)


def _anywhere(catalog: Catalog, source: str) -> bool:
    """Whether the catalog names something that comes from there: a chart, or any text that is an address."""
    charts = [c.chart for c in catalog.components.values() if c.chart is not None]
    if any(_begins(f"{chart.repository}/{chart.name}", source) for chart in charts):
        return True
    documents = [d for c in catalog.components.values() for d in (c.values, *c.values_files.values()) if d is not None]
    documents += [overlay.origin.document for overlay in catalog.overlays.values()]
    documents += [mixin.origin.document for mixin in catalog.mixins.values()]
    settings = (catalog.workspace.settings, *(entry.settings for entry in catalog.workspace.bundles.values()))
    trees = [*(document.data for document in documents), *(said.get("gates", {}) for said in settings)]
    return any(
        _begins(_OCI + text, source) or _begins(_OCI + _with_registry(text), source)
        for tree in trees
        for text in _texts(tree)
    )


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _texts(child)


def _longest(address: str, mirrors: Iterable[Mirror]) -> Mirror | None:
    fitting = [m for m in mirrors if _begins(address, m.source)]
    return max(fitting, key=lambda m: len(m.source), default=None)


def _begins(address: str, prefix: str) -> bool:
    # A prefix ends where a part of the address ends.
    return address == prefix or (address.startswith(prefix) and address[len(prefix)] in "/:@")
