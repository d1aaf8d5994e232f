"""What an object must be before a cluster can take it: its form and size, and its component lists it if it is a CRD."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compiler.errors import Collector
from compiler.model import KubeObject, ResolvedComponent
from compiler.source import Document, Path, dotted

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

MAX_DATA = 1024 * 1024
"""Bytes that the values of a ConfigMap or Secret may hold together; the API server's own validation."""

MAX_OBJECT = 3 * 512 * 1024
"""Bytes of any one object; etcd's default for a request (`--max-request-bytes`)."""


def well_formed(document: Document, collector: Collector) -> bool:
    """Whether the document is an object at all. Records BC3008 if not, and BC3013 for each null in one."""
    problem = _malformed(document.data)
    if problem:
        fix = "an object has apiVersion, kind and metadata.name; values that are not objects belong in another file"
        collector.error("BC3008", f"not a Kubernetes object: {problem}", document.at(), fix=fix)
        return False
    for path in _nulls(document.data):
        collector.error("BC3013", f"null at `{dotted(path)}`", document.at(path), fix="leave the key out")
    return True


def check(made: KubeObject, component: ResolvedComponent, collector: Collector) -> None:
    """Record BC3008 for an object that is too large, and for a CRD that `crds` of its component does not list."""
    size = len(json.dumps(made.data, separators=(",", ":"), ensure_ascii=False).encode())
    held = _held(made) if size > MAX_DATA else 0
    if held > MAX_DATA:
        collector.error(
            "BC3008",
            f"{made.kind} `{made.name}` holds {held} bytes, and the API server takes {MAX_DATA}",
            made.origin,
            fix="split it into several, or have the workload fetch what is large",
        )
    elif size > MAX_OBJECT:
        collector.error(
            "BC3008",
            f"{made.kind} `{made.name}` is {size} bytes as JSON, and etcd takes {MAX_OBJECT} in one request",
            made.origin,
            fix="split it into several objects, or leave out what it does not need (descriptions of a CRD's schema)",
        )
    if (made.group, made.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        _listed(made, component, collector)


def _listed(made: KubeObject, component: ResolvedComponent, collector: Collector) -> None:
    # What is not listed gets no edge and no gate: an object of the kind could come first.
    if any(crd.name == made.name for crd in component.component.crds):
        return
    spec = made.data.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    names = spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else None
    versions = [v.get("name") for v in spec.get("versions") or () if isinstance(v, dict) and v.get("served", True)]
    line = f"{{name: {made.name}, kind: {kind or 'KIND'}, scope: {spec.get('scope') or 'SCOPE'}, "
    line += f"versions: [{', '.join(str(version) for version in versions)}], from: manifests}}"
    collector.error(
        "BC3008",
        f"CRD `{made.name}` is in no entry of `crds` of `{component.name}`, so nothing would wait for it",
        made.origin,
        fix=f"add to `crds` in component.yaml: - {line}",
    )


def _held(made: KubeObject) -> int:
    """The bytes of a ConfigMap's or Secret's values as the API server counts them; what is base64, decoded."""
    if made.group or made.kind not in ("ConfigMap", "Secret"):
        return 0
    encoded = "binaryData" if made.kind == "ConfigMap" else "data"
    held: dict[str, int] = {}
    for field in ("binaryData", "data", "stringData"):
        values = made.data.get(field)
        for key, value in values.items() if isinstance(values, Mapping) else ():
            held[str(key)] = _decoded(str(value)) if field == encoded else len(str(value).encode())
    return sum(held.values())


def _decoded(text: str) -> int:
    try:
        return len(base64.b64decode(text))
    except (binascii.Error, ValueError):
        return len(text.encode())  # the API server refuses it for another reason


def _malformed(data: Any) -> str | None:
    """Why `data` is no object that an API server takes, or None."""
    if not isinstance(data, dict):
        return "the document is no mapping"
    for key in ("apiVersion", "kind"):
        if not isinstance(data.get(key), str) or not data[key]:
            return f"`{key}` must be a string"
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return "`metadata` is missing"
    name = metadata.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > 253:
        return f"`metadata.name` must be a DNS name in lower case, not {name!r}"
    for key in ("labels", "annotations"):
        for word, value in (metadata.get(key) or {}).items():
            if not isinstance(value, str):
                return f"`metadata.{key}.{word}` must be a string, quote it"
    return None


def _nulls(data: Any, at: Path = ()) -> Iterator[Path]:
    if data is None:
        yield at
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _nulls(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _nulls(value, (*at, index))
