"""Options that set values, placement and storage: `--set` and its relatives, on every command that compiles."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from compiler.records import dataclass

if TYPE_CHECKING:
    from compiler.model import Flags

F = TypeVar("F", bound=Callable[..., Any])

_TAINT = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^=:]*))?(:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?")


@dataclass(frozen=True)
class Knobs:
    """What the options say, each in the order given.

    Values are (component, path, value) triples; the others are (the option as given, setting sections) pairs.
    """

    set_json: tuple[Any, ...] = ()
    set_: tuple[Any, ...] = ()
    set_file: tuple[Any, ...] = ()
    system_node_selector: tuple[Any, ...] = ()
    system_node_toleration: tuple[Any, ...] = ()
    accelerated_node_selector: tuple[Any, ...] = ()
    accelerated_node_toleration: tuple[Any, ...] = ()
    workload_selector: tuple[Any, ...] = ()
    workload_gate: tuple[Any, ...] = ()
    nodes: tuple[Any, ...] = ()
    storage_class: tuple[Any, ...] = ()
    shared_storage_class: tuple[Any, ...] = ()

    def flags(self, profile: Mapping[str, str], deployers: tuple[str, ...] = ()) -> Flags:
        """All flags of the command."""
        from compiler.model import Flags

        # Helm's order: JSON, then typed values, then files.
        values = (*self.set_json, *self.set_, *self.set_file)
        settings = [s for f in fields(self) if not f.name.startswith("set_") for s in _joined(getattr(self, f.name))]
        return Flags(profile=profile, deployers=deployers or None, set=values, settings=tuple(settings))


def _joined(given: tuple[Any, ...]) -> list[tuple[str, Any]]:
    # A list of settings replaces an earlier one, so that tolerations of one option must be one list.
    lists = [tolerations for _, sections in given for tolerations in _lists(sections)]
    if len(lists) < 2:
        return list(given)
    scope = next(iter(given[0][1]["placement"]))
    whole = _nested(("placement", scope, "tolerations"), [item for one in lists for item in one])
    return [(" ".join(option for option, _ in given), whole)]


def _lists(sections: Mapping[str, Any]) -> list[list[Any]]:
    places = sections.get("placement", {}).values()
    return [place["tolerations"] for place in places if isinstance(place, dict) and "tolerations" in place]


def shown(flags: Flags) -> str:
    """The flags as they are given on the command line, shortened."""
    from compiler.source import dotted

    given = [f"--profile {name}={value}" for name, value in sorted(flags.profile.items())]
    given += [f"--deployer {name}" for name in flags.deployers or ()]
    given += [f"--set {name}:{dotted(path)}" for name, path, _ in flags.set]
    return " ".join([*given, *(option for option, _ in flags.settings)])


def knob_options(command: F) -> F:
    """Add the options to a command; it gets one argument `knobs` for all of them."""

    @functools.wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:
        mine = {f.name: kwargs.pop(f.name) for f in fields(Knobs)}
        return command(*args, knobs=Knobs(**mine), **kwargs)

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return cast("F", collected)


def _contradiction(given: Sequence[tuple[str, Any]]) -> str | None:
    """Two uses of one option that say different things of one setting. Tolerations are gathered instead."""
    said: dict[tuple[str, ...], tuple[str, Any]] = {}
    for option, sections in given:
        for path, value in _leaves(sections):
            before, other = said.setdefault(path, (option, value))
            if other != value:
                return f"`{before}` and `{option}` say different things of `{path[-1]}`"
    return None


def _leaves(node: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and (*path, key)[-2:] != ("workload", "gate"):
            yield from _leaves(value, (*path, key))
        elif not isinstance(value, list):
            yield (*path, key), value


def _option(name: str, read: Callable[[str, str], Any], metavar: str, text: str) -> Callable[[F], F]:
    # The values are read here, so that whatever remembers the parameters of a command sees them, files' text included.
    def convert(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for value in given:
            try:
                found += read(name, value)
            except ValueError as error:
                raise click.BadParameter(f"`{value}`: {error}") from error
        twice = None if read is _values else _contradiction(found)
        if twice:
            raise click.BadParameter(twice)
        return tuple(found)

    key = name.removeprefix("--").replace("-", "_")
    return click.option(
        name, "set_" if key == "set" else key, callback=convert, multiple=True, metavar=metavar, help=text
    )


def _values(name: str, given: str) -> list[Any]:
    from compiler.resolve import strvals

    component, colon, text = given.partition(":")
    if not colon or not component or "=" in component:
        raise ValueError("name the component first: COMPONENT:PATH=VALUE")
    if name == "--set-json":
        said = strvals.parse_json(text)
    elif name == "--set-file":
        said = strvals.parse_file(text, _file)
    else:
        said = strvals.parse(text)
    return [(component, path, value) for path, value in said]


def _file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 text") from error


def _selector(*path: str) -> Callable[[str, str], Any]:
    def read(name: str, given: str) -> Any:
        labels: dict[str, str] = {}
        for part in given.split(","):
            key, equals, value = part.partition("=")
            if not key or not equals or "=" in value:
                raise ValueError("write KEY=VALUE[,KEY=VALUE...]")
            if labels.setdefault(key, value) != value:
                raise ValueError(f"`{key}` has two values")
        return [(f"{name} {given}", _nested(path, labels))]

    return read


def _tolerations(*path: str) -> Callable[[str, str], Any]:
    def read(name: str, given: str) -> Any:
        return [(f"{name} {given}", _nested(path, [_toleration(given)]))]

    return read


def _toleration(given: str) -> dict[str, str]:
    if given == "*":
        return {"operator": "Exists"}
    match = _TAINT.fullmatch(given)
    if match is None:
        raise ValueError("write KEY[=VALUE][:EFFECT], or `*` for every taint")
    how = {"operator": "Exists"} if match["value"] is None else {"operator": "Equal", "value": match["value"]}
    return {"key": match["key"], **how, **({"effect": match["effect"]} if match["effect"] else {})}


def _gate(name: str, given: str) -> Any:
    match = _TAINT.fullmatch(given)
    if match is None or match["effect"] is None:
        raise ValueError("write KEY[=VALUE]:EFFECT with the effect NoSchedule, PreferNoSchedule or NoExecute")
    taint = {"key": match["key"], **({"value": match["value"]} if match["value"] else {}), "effect": match["effect"]}
    return [(f"{name} {given}", _nested(("placement", "workload", "gate"), taint))]


def _nodes(name: str, given: str) -> Any:
    # Kubernetes counts in 32 bits.
    if not (given.isascii() and given.isdigit() and len(given) <= 10 and 0 < int(given) < 2**31):
        raise ValueError("write a number of nodes, 1 or more and at most 2147483647")
    return [(f"{name} {given}", _nested(("placement", "nodes"), int(given)))]


def _text(*path: str) -> Callable[[str, str], Any]:
    def read(name: str, given: str) -> Any:
        if not given:
            raise ValueError("the name is empty")
        return [(f"{name} {given}", _nested(path, given))]

    return read


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = {step: value}
    nested: dict[str, Any] = value
    return nested


_OPTIONS = (
    _option("--set", _values, "COMPONENT:PATH=VALUE", "Set a value, typed as Helm types it; null deletes."),
    _option("--set-json", _values, "COMPONENT:PATH=JSON", "Set a value that is given as JSON."),
    _option("--set-file", _values, "COMPONENT:PATH=FILE", "Set a value to the text of a file."),
    _option(
        "--system-node-selector",
        _selector("placement", "system", "nodeSelector"),
        "KEY=VALUE",
        "Nodes of controllers and operators.",
    ),
    _option(
        "--system-node-toleration",
        _tolerations("placement", "system", "tolerations"),
        "KEY[=VALUE][:EFFECT]",
        "Taint that controllers and operators tolerate.",
    ),
    _option(
        "--accelerated-node-selector",
        _selector("placement", "accelerated", "nodeSelector"),
        "KEY=VALUE",
        "Nodes with accelerators.",
    ),
    _option(
        "--accelerated-node-toleration",
        _tolerations("placement", "accelerated", "tolerations"),
        "KEY[=VALUE][:EFFECT]",
        "Taint that what runs beside accelerators tolerates.",
    ),
    _option(
        "--workload-selector",
        _selector("placement", "workload", "selector"),
        "KEY=VALUE",
        "Labels of the pods that are workload.",
    ),
    _option("--workload-gate", _gate, "KEY[=VALUE]:EFFECT", "Taint that holds workload off a node."),
    _option("--nodes", _nodes, "NUMBER", "Number of accelerated nodes."),
    _option("--storage-class", _text("storage", "class"), "NAME", "Storage class of volumes for one pod."),
    _option(
        "--shared-storage-class", _text("storage", "sharedClass"), "NAME", "Storage class of volumes for several pods."
    ),
)
