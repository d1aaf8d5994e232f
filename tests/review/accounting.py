"""Whether a report tells every emitted line that differs: worked out from the files, not from what was compared."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compiler.model import Files
from compiler.review.diff.model import BundleDiff, ComponentDiff, FileChange
from compiler.yamlio import load

_HASH = re.compile(r"'?\b(0\.1\.0-h)?[0-9a-f]{8}\b'?")
_FOLDED = re.compile(
    r"^ +(helm\.sh/chart|app\.kubernetes\.io/(version|part-of)|bundlec\.dev/(content|bundle)|checksum/\S+):"
)


def unaccounted(bundle: BundleDiff, old: Files, new: Files) -> list[str]:
    """`file: what` of everything that differs between two emitted bundles and stands in no entry of the report."""
    differing = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    told = {file.path: file for file in bundle.files}
    found = [f"{path}: the report names it, or not, wrongly" for path in sorted(differing ^ told.keys())]
    if not differing:
        return found
    for path in sorted(differing & told.keys()):
        found += [f"{path}: {what}" for what in _file(told[path], bundle, old.get(path), new.get(path))]
    return found


def _file(file: FileChange, bundle: BundleDiff, old: bytes | None, new: bytes | None) -> Iterator[str]:
    if file.path == "checksums.txt":
        lines = _changed(old, new)
        paths = {line[1:].split("  ", 1)[1] for line in lines}
        yield from sorted(f"{p} is not told" for p in paths - {f.path for f in bundle.files})
    elif file.path == "bundle.yaml":
        yield from _inventory(bundle, _spec(old), _spec(new))
    elif file.path == "recipe.yaml":
        yield from _recipe(bundle, _spec(old), _spec(new))
    elif file.part == "values":
        yield from _values(file, bundle, old, new)
    elif file.part == "manifests":
        component = _component(file, bundle)
        other = component is not None and (
            component.status == "renamed" or any(o.status in {"renamed", "moved"} for o in component.objects)
        )
        if not (other and (old is None or new is None)):  # the same objects lie in files of other names
            yield from _manifest(file, bundle, old, new)
    elif file.part == "namespaces":
        name = file.path.split("/")[-1].removesuffix(".yaml")
        if not _field(bundle, "namespaces", name):
            yield from _names_only(bundle, old, new)
    elif file.part in {"wiring", "words"}:
        yield from _text(file, bundle, old, new)
    elif file.path.startswith("components/"):
        for line in _changed(old, new):
            if not re.fullmatch(r"[+-]version: 0\.1\.0-h[0-9a-f]{8}", line) and not _whole(file, bundle):
                yield line
    elif (old is not None and new is not None) or not file.path.endswith(("/Chart.yaml", "/all.yaml", "/all.tpl")):
        yield from _names_only(bundle, old, new)


def _names_only(bundle: BundleDiff, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Lines that differ in more than hashes, the bundle's own name and its prefix."""
    sides = [Counter(_masked(line, bundle) for line in (side or b"").decode().splitlines()) for side in (old, new)]
    yield from (f"told by nothing: -{line}" for line in sides[0] - sides[1])
    yield from (f"told by nothing: +{line}" for line in sides[1] - sides[0])


def _masked(line: str, bundle: BundleDiff) -> str:
    words = {bundle.name, bundle.old_name or bundle.name, "<bundle>", "<prefix>"}
    prefixes = [e.change for e in bundle.fields if e.change.path == "settings.prefix"]
    words |= {str(word) for change in prefixes for word in (change.old, change.new)}
    names = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    line = re.sub(rf"(?<![\w-])({names})(?!\w)", "<name>", line)
    return _HASH.sub("<content>", line)


def _values(file: FileChange, bundle: BundleDiff, old: bytes | None, new: bytes | None) -> Iterator[str]:
    component = _component(file, bundle)
    one_sided = old is None or new is None
    if component is not None and component.status in ({"added", "removed", "renamed"} if one_sided else set()):
        return
    before, after = (_leaves(_yaml(side)) for side in (old, new))
    differing = [p for p in {*before, *after} if before.get(p, _leaves) != after.get(p, _leaves)]
    if not differing and not file.reordered and old is not None and new is not None:
        yield "the same data, and it is not told so"
    entries = component.values if component else ()
    places = [tuple(map(str, at)) for e in entries for at in (e.change.old_at, e.change.new_at)]
    for path in sorted(differing):
        if not any(_meets(path, place) for place in places):
            yield f"value {'.'.join(path)}"


def _manifest(file: FileChange, bundle: BundleDiff, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Lines that one side has more often than the other stand in a hunk, or repeat a version or a name."""
    objects = [o for c in bundle.components for o in c.objects]
    sides = [Counter((side or b"").decode().splitlines()) for side in (old, new)]
    for sign, more in (("-", sides[0] - sides[1]), ("+", sides[1] - sides[0])):
        told = {line[1:] for o in objects for line in o.hunk if line.startswith(sign)}
        yield from (sign + line for line in more if line not in told and not _FOLDED.match(line))
    if sides[0] == sides[1] and not file.reordered and not any(o.hunk for o in objects):
        yield "lines in another order, and nothing is told"


def _text(file: FileChange, bundle: BundleDiff, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Lines that one side has more often stand in the hunk, where hashes and what was renamed are masked."""
    if file.status != "changed":
        return
    sides = [Counter(_masked(line, bundle) for line in (side or b"").decode().splitlines()) for side in (old, new)]
    for sign, more in (("-", sides[0] - sides[1]), ("+", sides[1] - sides[0])):
        told = {_masked(line[1:], bundle) for line in file.hunk if line.startswith(sign)}
        yield from (sign + line for line in more if line not in told)


def _inventory(bundle: BundleDiff, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    words = {"recipe": "recipe", "criteria": "criteria", "overlays": "overlays", "mixins": "mixins"}
    words |= {"profile": "profile", "satisfied": "satisfied", "preflight": "preflight"}
    for key in [*old, *(k for k in new if k not in old)]:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if key == "recipe":
            if before["name"] != after["name"] and not _field(bundle, "recipe"):
                yield "the recipe's name"
        elif key in words:
            if not _field(bundle, words[key]):
                yield f"{key}: {before} -> {after}"
        elif key in {"prefix", "deployers"}:
            if not _field(bundle, "settings", key):
                yield key
        elif key == "namespaces":
            yield from _namespaces(bundle, before, after)
        elif key == "releases":
            yield from _releases(bundle, before, after)
        elif key == "edges":
            yield from _ends(bundle, before, after, lambda e: (e["provider"], e["dependant"]), "edge")
        elif key == "gates":
            # In which order a gate asks is no matter of what it asks.
            for gate in (*before, *after):
                gate["checks"].sort(key=repr)
            yield from _ends(bundle, before, after, lambda g: (g["release"], g["release"]), "gate")
        else:
            yield f"nobody looks at {key}"


def _namespaces(bundle: BundleDiff, before: Any, after: Any) -> Iterator[str]:
    old, new = ({n["name"]: n for n in side} for side in (before, after))
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name) or _field(bundle, "namespaces", name):
            continue
        rest = [{k: v for k, v in (side.get(name) or {}).items() if k != "components"} for side in (old, new)]
        if rest[0] == rest[1] and any(
            c.status in {"added", "removed", "renamed"} or any(e.change.path == "namespace" for e in c.fields)
            for c in bundle.components
        ):
            continue  # who lives there follows
        yield f"namespace {name}"


def _releases(bundle: BundleDiff, before: Any, after: Any) -> Iterator[str]:
    old, new = ({r["id"]: r for r in side} for side in (before, after))
    components = {c.name: c for c in bundle.components} | {c.old_name: c for c in bundle.components if c.old_name}
    for name in sorted({*old, *new}):
        left, right = old.get(name, {}), new.get(name, {})
        component = components.get((right or left)["component"])
        if left == right:
            continue
        if component is None:
            if [k for k in {*left, *right} if left.get(k) != right.get(k)] != ["teardown"]:
                yield f"release {name}: nothing is told of its component"
            elif not _field(bundle, "settings", "gates", "timeoutScale"):
                yield f"release {name}: its teardown"
            continue
        if component.status in {"added", "removed", "renamed"}:
            continue
        paths = [e.change.path for e in component.fields]
        for key in sorted({*left, *right} - {"id", "component", "piece", "values", "content", "empty"}):
            if left.get(key) != right.get(key):
                if key == "teardown" and _field(bundle, "settings", "gates", "timeoutScale"):
                    continue  # time limits follow
                word = {"teardown": "teardownBefore"}.get(key, key)
                piece = (right or left)["piece"]
                if not any(p.startswith((word, f"{piece}.{word}")) or p == piece for p in paths) and left and right:
                    yield f"release {name}: {key}"
        if (not left or not right) and not any(p.split(".")[0] == (left or right)["piece"] for p in paths):
            yield f"release {name} came or went"
        told = component.values or component.objects or component.noise or component.fields
        if left.get("content") != right.get("content") and not told:
            yield f"release {name}: its content"
    common = [n for n in old if n in new]
    now = [n for n in new if n in old]
    if common != now and not any(o.kind == "order" for o in bundle.order):
        yield "the order of the releases"


def _ends(bundle: BundleDiff, before: Any, after: Any, ends: Any, kind: str) -> Iterator[str]:
    old, new = ({ends(e): e for e in side} for side in (before, after))
    whole = {
        f"{name}{piece}"
        for c in bundle.components
        for name in (c.name, c.old_name)
        if name
        and (c.status != "changed" or any(e.change.path.split(".")[0] in {"pre", "main", "post"} for e in c.fields))
        for piece in ("", "-pre", "-post")
    }
    text = " ".join(o.text for o in bundle.order)
    names = {c.old_name: c.name for c in bundle.components if c.old_name}
    words = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![a-z0-9])") if names else None

    def now(item: Any) -> str:
        return words.sub(lambda m: names[m[1]], repr(item)) if words else repr(item)

    for key in sorted({*old, *new}):
        told = all(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in key)
        if now(old.get(key)) != now(new.get(key)) and not whole & set(key) and not told:
            yield f"{kind} {key}: {old.get(key)} -> {new.get(key)}"


def _recipe(bundle: BundleDiff, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in [*old, *(k for k in new if k not in old)]:
        before, after = old.get(key), new.get(key)
        if before == after or key == "bundle":
            continue
        if key == "components":
            yield from _recipe_components(bundle, before, after)
        elif key == "profile":
            if not (_field(bundle, "profile") or _field(bundle, "profileOwns")):
                yield "profile"
        elif not _field(bundle, key):
            yield f"{key}: {before} -> {after}"


def _recipe_components(bundle: BundleDiff, before: Any, after: Any) -> Iterator[str]:
    old, new = ({c["name"]: c for c in side} for side in (before, after))
    components = {c.name: c for c in bundle.components} | {c.old_name: c for c in bundle.components if c.old_name}
    for name in sorted({*old, *new}):
        left, right = old.get(name, {}), new.get(name, {})
        component = components.get(name)
        if left == right or (component is not None and component.status != "changed"):
            continue
        if not (left.get("enabled") and right.get("enabled")):
            if not _field(bundle, "switchedOff", name):
                yield f"{name} is not there: {left} -> {right}"
            continue
        if component is None:
            yield f"component {name}: nothing is told"
            continue
        places = [tuple(map(str, at)) for e in component.values for at in (e.change.old_at, e.change.new_at)]
        a, b = _leaves(left.get("values", {})), _leaves(right.get("values", {}))
        for path in sorted(p for p in {*a, *b} if a.get(p, _leaves) != b.get(p, _leaves)):
            if not any(_meets(path, place) for place in places):
                yield f"{name}: value {'.'.join(path)}"
        paths = [e.change.path for e in component.fields]
        for key in ({*left, *right}) - {"name", "enabled", "values"}:
            if left.get(key) != right.get(key):
                word = {"version": "chart.version"}.get(key, key)
                if not any(p.startswith(word) for p in paths):
                    yield f"{name}: {key}"
    if [n for n in old if n in new] != [n for n in new if n in old] and not _order_told(bundle):
        yield "the order of the components"


def _order_told(bundle: BundleDiff) -> bool:
    return bool(bundle.order or bundle.components)


def _component(file: FileChange, bundle: BundleDiff) -> ComponentDiff | None:
    release = file.path.split("/")[1]
    names = (release, release.removesuffix("-pre"), release.removesuffix("-post"))
    components = {c.name: c for c in bundle.components} | {c.old_name: c for c in bundle.components if c.old_name}
    return next((components[n] for n in names if n in components), None)


def _whole(file: FileChange, bundle: BundleDiff) -> bool:
    component = _component(file, bundle)
    if component is None:
        return False
    pieces = {e.change.path.split(".")[0] for e in component.fields}
    return component.status != "changed" or bool(pieces & {"pre", "main", "post"}) or bool(component.objects)


def _field(bundle: BundleDiff, *steps: str) -> bool:
    for entry in bundle.fields:
        if tuple(map(str, entry.change.steps[: len(steps)])) == steps:
            return True
        if str(entry.change.steps[0]) == steps[0] and len(entry.change.steps) < len(steps):
            return True
    return False


def _meets(path: tuple[str, ...], place: tuple[str, ...]) -> bool:
    shorter = min(len(path), len(place))
    return path[:shorter] == place[:shorter]


def _changed(old: bytes | None, new: bytes | None) -> list[str]:
    a, b = ((side or b"").decode().splitlines() for side in (old, new))
    return [
        sign + line
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        if tag != "equal"
        for sign, lines in (("-", a[i1:i2]), ("+", b[j1:j2]))
        for line in lines
    ]


def _yaml(content: bytes | None) -> Any:
    return load(content.decode(), "").data if content else None


def _spec(content: bytes | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _yaml(content)["spec"] if content else {}
    return found


def _leaves(data: Any, at: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Path -> scalar, list or empty map; types tell values apart."""
    if isinstance(data, Mapping) and data:
        return {p: v for key, value in data.items() for p, v in _leaves(value, (*at, str(key))).items()}
    return {at: (type(data).__name__, repr(data))}
