"""Whether settings are what Kubernetes will take: names of objects, labels, tolerations, addresses.

Flags and bundlec.yaml meet here, so that both are held to one rule; what an API server would refuse at night is
refused when compiling. The rules are those of the Kubernetes API: DNS-1123 subdomains, the syntax of labels, and the
validation of tolerations in core/v1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from compiler.errors import Collector
from compiler.paths import MISSING, lookup
from compiler.source import Path, dotted

if TYPE_CHECKING:
    from compiler.resolve.settings import Written

_OBJECT = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_IMAGE = re.compile(
    r"([A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?/)?[a-z0-9][-a-z0-9._/]*"
    r"(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?"
)
_SERVER = re.compile(r"https?://[^\s/]+[^\s]*")

Problem = tuple[Path, str, str]  # (where below the setting, what is wrong, what to write)


def check(written: Written, collector: Collector) -> None:
    """Record BC1102 for each setting that Kubernetes or a controller would not take."""
    for path, problems in _RULES:
        value = lookup(written.tree, path)
        if value is MISSING or value is None:
            continue
        for below, what, fix in problems(value):
            # A list is a leaf for whoever layers settings; what is in it lies below the list's own place.
            listed = any(isinstance(step, int) for step in below)
            at = written.origin(path).down(*below) if listed else written.origin((*path, *below))
            collector.error("BC1102", f"`{dotted((*path, *below))}`: {what}", at, fix=fix)


def _object(value: Any) -> Iterator[Problem]:
    if not _OBJECT.fullmatch(str(value)):
        fix = "lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit"
        yield (), f"`{value}` is no name of a Kubernetes object", fix


def _objects(value: Any) -> Iterator[Problem]:
    for index, name in enumerate(value):
        for _, what, fix in _object(name):
            yield (index,), what, fix
        if name in value[:index]:
            yield (index,), f"`{name}` stands twice", "remove one"


def _selector(value: Mapping[str, Any]) -> Iterator[Problem]:
    for key, label in value.items():
        yield from _key(key, (key,))
        if label and not _LABEL.fullmatch(str(label)):
            fix = "at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit"
            yield (key,), f"`{label}` is no value of a label", fix


def _key(key: str, below: Path) -> Iterator[Problem]:
    prefix, slash, name = key.rpartition("/")
    if not _LABEL.fullmatch(name) or (slash and not _OBJECT.fullmatch(prefix)):
        yield below, f"`{key}` is no key of a label or taint", "write NAME or DOMAIN/NAME, as in nvidia.com/gpu"


def _tolerations(value: Any) -> Iterator[Problem]:
    for index, one in enumerate(value):
        operator = one.get("operator", "Equal")
        if "key" in one:
            yield from _key(one["key"], (index, "key"))
        elif operator != "Exists":
            yield (
                (index,),
                "a toleration without a key tolerates nothing",
                "add `key`, or `operator: Exists` for every taint",
            )
        if operator == "Exists" and one.get("value"):
            yield (index, "value"), "`operator: Exists` takes no value", "remove it, or write `operator: Equal`"
        if "tolerationSeconds" in one and one.get("effect") != "NoExecute":
            yield (index, "tolerationSeconds"), "only a toleration of NoExecute runs out", "write `effect: NoExecute`"


def _taint(value: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _key(value["key"], ("key",))
    if value.get("value") and not _LABEL.fullmatch(str(value["value"])):
        yield ("value",), f"`{value['value']}` is no value of a taint", "write it as the value of a label"


def _image(value: Any) -> Iterator[Problem]:
    if not _IMAGE.fullmatch(str(value)):
        yield (), f"`{value}` is no image", "write HOST/PATH:TAG or HOST/PATH@sha256:DIGEST"


def _server(value: Any) -> Iterator[Problem]:
    if not _SERVER.fullmatch(str(value)):
        yield (
            (),
            f"`{value}` is no address of an API server",
            "write https://HOST[:PORT], or `name` for a cluster by name",
        )


def _word(value: Any) -> Iterator[Problem]:
    if re.search(r"\s", str(value)) or not str(value).isprintable():
        yield (), f"`{value}` holds blanks", "write it without"


_RULES: tuple[tuple[Path, Callable[[Any], Iterator[Problem]]], ...] = (
    (("git", "url"), _word),
    (("git", "revision"), _word),
    (("argocd", "project"), _object),
    (("argocd", "destination", "server"), _server),
    (("flux", "source", "secretRef"), _object),
    (("flux", "kubeConfig"), _object),
    (("gates", "job", "image"), _image),
    (("gates", "job", "pullSecrets"), _objects),
    (("gates", "job", "nodeSelector"), _selector),
    (("gates", "job", "tolerations"), _tolerations),
    (("gates", "job", "priorityClass"), _object),
    (("placement", "system", "nodeSelector"), _selector),
    (("placement", "system", "tolerations"), _tolerations),
    (("placement", "accelerated", "nodeSelector"), _selector),
    (("placement", "accelerated", "tolerations"), _tolerations),
    (("placement", "workload", "selector"), _selector),
    (("placement", "workload", "gate"), _taint),
    (("storage", "class"), _object),
    (("storage", "sharedClass"), _object),
)
