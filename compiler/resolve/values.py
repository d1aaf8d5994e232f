"""The final values of one component: its own files, then the layers of its draft; and what no layer may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.errors import Collector, did_you_mean
from compiler.model import Component, Trace
from compiler.resolve.draft import Draft
from compiler.resolve.merge import Layer, LayerTrace, Merged, kind, leaves, merge, overlap
from compiler.resolve.nulls import settle
from compiler.source import Document, dotted, parse_path


def final(draft: Draft, collector: Collector) -> tuple[Mapping[str, Any], Mapping[str, Any], Trace]:
    """Values for templates and predicates, values to write for the chart, and the trace of both.

    Records BC2005 for values of different types at one path, BC2006 for a value that no template reads, BC2009 for a
    null that deletes nothing, and BC2014 for a locked path.
    """
    component = draft.component
    layers = [*own_layers(draft, collector), *draft.layers]
    merged = merge(layers)
    trace = LayerTrace(layers)
    _report_clashes(component.name, merged, layers, collector)
    _refuse_locked(component, draft.layers, collector)
    ours = [parse_path(path) for path in component.manifest_values]
    defaults = [parse_path(path) for path in component.chart_defaults]
    values, chart = settle(merged, layers, trace, defaults=defaults, ours=ours, collector=collector)
    if component.chart is None:
        known = {str(path[0]) for path in ours if path} | set(layers[0].data if layers and layers[0].own else ())
        _refuse_unread(component, draft.layers, known, collector)
        chart = {}
    return values, chart, trace


def own_layers(draft: Draft, collector: Collector) -> list[Layer]:
    """The component's values file, and the one that a ref chose in addition."""
    component = draft.component
    layers = [] if component.values is None else [_layer(component.values, component)]
    if draft.values_file is not None:
        chosen = component.values_files.get(draft.values_file)
        if chosen is None:
            collector.error(
                "BC1206",
                f"component `{component.name}` has no values file `{draft.values_file}`",
                draft.values_file_origin,
                fix=did_you_mean(draft.values_file, component.values_files) or "it lies in the component's folder",
            )
        elif component.values is None or chosen.file != component.values.file:
            layers.append(_layer(chosen, component))
    return layers


def _layer(document: Document, component: Component) -> Layer:
    name = document.file.rsplit("/", 1)[-1]
    return Layer(f"{component.name} {name}", document.data or {}, document.at(), own=True)


def _report_clashes(name: str, merged: Merged, layers: Sequence[Layer], collector: Collector) -> None:
    for clash in merged.clashes:
        earlier = LayerTrace(layers[: layers.index(clash.layer)])[clash.path][-1]
        collector.error(
            "BC2005",
            f"`{name}:{dotted(clash.path)}` is a {kind(clash.before)} ({earlier.layer}) "
            f"and becomes a {kind(clash.after)} ({clash.layer.name})",
            clash.layer.origin.down(*clash.path),
            fix=f"give a {kind(clash.before)} with --set-json, or set a deeper path"
            if clash.layer.name == "--set"
            else f"write a {kind(clash.before)}; to replace it on purpose, set null in a layer between the two",
            notes=[(earlier.origin, f"the {kind(clash.before)}")],
        )


def _refuse_locked(component: Component, layers: Sequence[Layer], collector: Collector) -> None:
    locked = {parse_path(path): reason for path, reason in component.locked_paths.items()}
    if not locked:
        return
    for layer in layers:
        for path, _ in leaves(layer.data):
            for target, reason in locked.items():
                if overlap(path, target):
                    collector.error(
                        "BC2014",
                        f"`{component.name}:{dotted(path)}` ({layer.name}) is locked: {reason}",
                        layer.origin.down(*path),
                        key=True,
                        fix="change it in the component, together with the fields that depend on it",
                        notes=[(component.origin, "`lockedPaths` of the component")],
                    )


def _refuse_unread(component: Component, layers: Sequence[Layer], known: set[str], collector: Collector) -> None:
    # Without a chart, a key that the component does not know can only be a mistake.
    for layer in layers:
        for key in layer.data:
            if key not in known:
                collector.error(
                    "BC2006",
                    f"`{component.name}` has no chart, and none of its manifests reads `{key}` ({layer.name})",
                    layer.origin.down(key),
                    key=True,
                    fix=did_you_mean(key, known) or "remove it, or add it to `manifestValues` of the component",
                )
