"""New source files that compile as they are: what `bundlec new` writes.

Nothing here touches the disk: files and edits are returned as text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from compiler.errors import Diagnostic, UserError, did_you_mean
from compiler.model import CRITERIA, Catalog
from compiler.source import Document

# What the field calls clusters, beside what the overlays of the catalog say: a name may be the first of its kind.
_WORDS: Mapping[str, Collection[str]] = {
    "service": ("aks", "bcm", "cks", "eks", "generic", "gke", "kind", "lke", "metal3", "nvke", "ocp", "oke", "rke2"),
    "accelerator": ("a100", "b200", "gb200", "gb300", "h100", "h200", "l40", "l40s", "rtx-pro-6000", "vr200"),
    "os": ("amazonlinux", "cos", "ol", "rhel", "rocky", "sles", "talos", "ubuntu"),
    "intent": ("inference", "training"),
    "platform": ("dynamo", "kubeflow", "kueue", "nim", "runai", "slurm"),
}
_SHOWN = 8  # names in a message
_HEAD = "apiVersion: bundlec.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n"


def component(name: str, chart: tuple[str, str, str] | None, schema: str | None) -> dict[str, str]:
    """The files of a component, by path: of a chart (repository, name, version), or of one manifest of its own."""
    folder = f"components/{name}"
    text = _head("Component", name, schema)
    text += f"  displayName: {name}\n  description: What {name} is for, in one sentence.\n  class: ops\n"
    text += f"  namespace:\n    name: {name}\n"
    if chart is not None:
        repository, chart_name, version = chart
        text += f'  chart:\n    repository: {repository}\n    name: {chart_name}\n    version: "{version}"\n'
        text += (
            "  # Then, as it grows: crds, requires, needs, checks, readiness, scheduling, rules (CONTRIBUTING.md).\n"
        )
        return {f"{folder}/component.yaml": text, f"{folder}/values.yaml": "# Values over those of the chart.\n{}\n"}
    text += "  # Values that the templates read.\n  manifestValues: [text]\n"
    text += "  manifests:\n    main: [manifests/config.yaml.j2]\n"
    manifest = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  text: {{{{ values.text | to_json }}}}\n"
    )
    return {
        f"{folder}/component.yaml": text,
        f"{folder}/values.yaml": f"text: {name}\n",
        f"{folder}/manifests/config.yaml.j2": manifest,
    }


def overlay(
    catalog: Catalog,
    name: str,
    base: str | None,
    criteria: Mapping[str, str],
    schema: str | None,
) -> dict[str, str]:
    """The file of an overlay.

    Criteria that are not given are read from the name (`gb200-gke-cos-inference`) by the values that the catalog's
    overlays have and the field knows. Without `base` it builds on the overlay that states most of them. Raises
    UserError (BC1204) for an unknown base, or when there is no telling which one is meant.
    """
    if base is not None and base not in catalog.overlays:
        fix = did_you_mean(base, catalog.overlays) or _bases(catalog)
        raise UserError([Diagnostic("BC1204", f"there is no overlay `{base}`", None, fix)])
    wanted = {**_by_name(name, catalog), **criteria}
    wanted = {key: wanted[key] for key in CRITERIA if key in wanted}
    whole = {overlay_name: _criteria(catalog, overlay_name) for overlay_name in sorted(catalog.overlays)}
    if base is None:
        fitting = [n for n, stated in whole.items() if stated.items() < wanted.items()]
        base = max(fitting, key=lambda n: (len(whole[n]), -len(n)), default=None)
        if base is None and whole:
            message = f"no criterion in `{name}` tells which overlay it builds on"
            raise UserError([Diagnostic("BC1204", message, None, _bases(catalog))])
    inherited = whole.get(base or "", {})
    # What contradicts the base is kept where it was asked for, so that it is told.
    own = {k: v for k, v in wanted.items() if k not in inherited or criteria.get(k, inherited[k]) != inherited[k]}
    text = _head("Overlay", name, schema)
    if base is not None:
        text += f"  base: {base}\n"
    text += f"  maturity: preview\n  description: What {name} is for, in one sentence.\n"
    if own:
        text += "  criteria:\n" + "".join(f"    {key}: {_word(value)}\n" for key, value in own.items())
    text += "  componentRefs: []\n"
    under = catalog.overlays.get(base or "")
    beside = under.origin.document.file.rpartition("/")[0] if under is not None else "overlays"
    return {f"{beside}/{name}.yaml": text}


def _bases(catalog: Catalog) -> str:
    """What `--base` may be: the root first, then those nearest to it."""
    depth: dict[str, int] = {}
    for name in catalog.overlays:
        seen, at = [name], catalog.overlays[name].base
        while at is not None and at in catalog.overlays and at not in seen:
            seen.append(at)
            at = catalog.overlays[at].base
        depth[name] = len(seen)
    near = sorted(catalog.overlays, key=lambda name: (depth[name], name))
    more = f" and {len(near) - _SHOWN} more below overlays/" if len(near) > _SHOWN else ""
    return f"give --base OVERLAY, one of {', '.join(f'`{name}`' for name in near[:_SHOWN])}{more}"


def mixin(name: str, schema: str | None) -> dict[str, str]:
    """The file of a mixin."""
    text = _head("Mixin", name, schema)
    return {f"mixins/{name}.yaml": text + "  constraints: []\n  componentRefs: []\n"}


def needs_inputs(catalog: Catalog, recipe: str) -> bool:
    """Whether a bundle of this recipe must set an input."""
    at: str | None = recipe
    while at is not None and at in catalog.overlays:
        if any(spec.required and spec.default is None for spec in catalog.overlays[at].inputs):
            return True
        at = catalog.overlays[at].base
    return False


def bundle(
    workspace: Document,
    text: str,
    name: str,
    recipe: str,
    prefix: str | None,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The text of bundlec.yaml with one more entry at the end of `bundles`; comments and everything else stay.

    Raises UserError (BC1102) when the list stands on one line: then there is no telling where to put it.
    """
    lines = text.splitlines()
    spec = workspace.data.get("spec") or {}
    at = workspace.span(("spec",)).column - 1
    if not spec.get("bundles"):
        return _first_bundle(workspace, lines, (name, recipe, prefix, inputs), at)
    first = workspace.span(("spec", "bundles", 0))
    dash = lines[first.line - 1].find("-")
    if lines[first.line - 1][: first.column - 1].strip() != "-":
        where = workspace.span(("spec", "bundles"), key=True)
        fix = f"write one entry a line, or add {{name: {name}, recipe: {recipe}}} yourself"
        raise UserError([Diagnostic("BC1102", "`bundles` stands on one line", where, fix)])
    last = workspace.span(("spec", "bundles", len(spec["bundles"]) - 1)).line
    end = last
    for number in range(last, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#"):
            if len(line) - len(line.lstrip()) <= dash:
                break
            end = number + 1
    return _inserted(lines, end, _entry(name, recipe, prefix, inputs, dash))


def short_prefix(name: str, taken: Collection[str]) -> str | None:
    """A prefix for a bundle whose name is long: the first letters of its parts; None when the name does."""
    if len(name) <= 20 and name not in taken:
        return None
    short = "".join(part[0] for part in name.split("-") if part)
    number, found = 1, short
    while found in taken:
        number += 1
        found = f"{short}{number}"
    return found


def _first_bundle(
    workspace: Document, lines: list[str], what: tuple[str, str, str | None, Mapping[str, Any]], at: int
) -> str:
    where = workspace.span(("spec", "bundles"), key=True)
    said = lines[where.line - 1].strip() if "bundles" in (workspace.data.get("spec") or {}) else ""
    entry = _entry(*what, at + 2)
    if said.partition("#")[0].strip() in ("bundles: []", "bundles:"):
        lines[where.line - 1] = " " * at + "bundles:"
        return _inserted(lines, where.line, entry)
    if workspace.data.get("spec"):
        start = workspace.span(("spec",)).line - 1
        return _inserted(lines, start, [" " * at + "bundles:", *entry])
    head = workspace.span(("spec",), key=True).line
    lines[head - 1] = "spec:"
    return _inserted(lines, head, ["  bundles:", *_entry(*what, 4)])


def _entry(name: str, recipe: str, prefix: str | None, inputs: Mapping[str, Any], indent: int) -> list[str]:
    from compiler.yamlio import dump

    said: dict[str, Any] = {"name": name, "recipe": recipe, **({"prefix": prefix} if prefix else {})}
    if inputs:
        said["inputs"] = inputs
    lines = dump(said).splitlines()
    return [f"{' ' * indent}{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]


def _inserted(lines: list[str], at: int, new: list[str]) -> str:
    return "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"


def _head(kind: str, name: str, schema: str | None) -> str:
    line = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    return line + _HEAD.format(kind=kind, name=_word(name))


def _word(text: str) -> str:
    # Digits and words such as `on` or `y` would not be text.
    from compiler.yamlio import needs_quotes

    return f'"{text}"' if needs_quotes(text) else text


def _criteria(catalog: Catalog, name: str) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    at: str | None = name
    while at is not None and at in catalog.overlays:
        found = {**catalog.overlays[at].criteria, **found}
        at = catalog.overlays[at].base
    return found


def unread(name: str, catalog: Catalog, criteria: Mapping[str, str]) -> tuple[str, ...]:
    """The parts of an overlay's name that no criterion was read from, in order; none when nothing was read at all."""
    read = {**_by_name(name, catalog), **criteria}
    rest = f"-{name}-"
    for value in sorted(read.values(), key=len, reverse=True):
        rest = rest.replace(f"-{value}-", "-")
    return tuple(part for part in rest.split("-") if part) if read else ()


def _by_name(name: str, catalog: Catalog) -> dict[str, str]:
    # `rtx-pro-6000` is a value of several parts, so the longest one counts.
    found: dict[str, str] = {}
    padded = f"-{name}-"
    for key, words in _WORDS.items():
        values = {str(o.criteria[key]) for o in catalog.overlays.values() if key in o.criteria} | set(words)
        matching = sorted(value for value in values if f"-{value}-" in padded)
        if matching:
            found[key] = max(matching, key=len)
    return found
