"""`dataclass`, as in the standard library, at a tenth of the start-up cost for frozen classes.

The standard decorator compiles half a dozen methods for every class, about half a millisecond each time a process
starts; over a hundred classes that is a third of the time budget of a build. Here a frozen class gets one compiled
method, `__init__`; the others are shared functions. `fields`, `replace`, `asdict` and `is_dataclass` of the standard
library work as usual. Anything but `frozen=True` (with `kw_only`, `order`) is left to the standard decorator.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - an explicit re-export
else:

    def dataclass(cls=None, /, *, frozen=False, kw_only=False, order=False, **others):  # noqa: ANN001, ANN003, ANN201 - see above
        """The decorator. Same meaning as `dataclasses.dataclass`."""
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen, kw_only=kw_only, order=order, **others)
        inherits = any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:])
        if not frozen or others or inherits:
            return dataclasses.dataclass(cls, frozen=frozen, kw_only=kw_only, order=order, **others)
        return _frozen(cls, kw_only, order)


@dataclasses.dataclass
class _Sample:
    field: int


# What marks an ordinary field for `dataclasses.fields` and `replace`, taken from a field that the library made.
_ORDINARY: Any = getattr(_Sample.__dataclass_fields__["field"], "_field_type")  # noqa: B009 - private to the library


def _frozen(cls: type, kw_only: bool, order: bool) -> type:
    table: dict[str, dataclasses.Field[Any]] = {}
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - inspect is slow to import
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, dataclasses.MISSING)
        field = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        field.name, field.type, field.kw_only = name, annotation, kw_only
        setattr(field, "_field_type", _ORDINARY)  # noqa: B010
        if isinstance(given, dataclasses.Field):
            if field.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, field.default)
        table[name] = field
    compared = tuple(name for name, field in table.items() if field.compare)
    shown = tuple(name for name, field in table.items() if field.repr)
    methods = {
        "__init__": _init(cls, table, kw_only),
        "__eq__": _eq(compared),
        "__hash__": _hash(compared),
        "__repr__": _repr(shown),
        "__setattr__": _refuse_set,
        "__delattr__": _refuse_delete,
    }
    if order:
        methods |= {f"__{name}__": _ordered(compared, getattr(operator, name)) for name in ("lt", "le", "gt", "ge")}
    for name, method in methods.items():
        if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
            setattr(cls, name, method)
    setattr(cls, "__dataclass_fields__", table)  # noqa: B010 - unknown to the type checker
    setattr(cls, "__match_args__", () if kw_only else tuple(table))  # noqa: B010
    return cls


def _init(cls: type, table: dict[str, dataclasses.Field[Any]], kw_only: bool) -> Any:
    """`__init__`, the one method that is compiled: instances are made by the thousand, so it may not loop."""
    scope: dict[str, Any] = {"MISSING": dataclasses.MISSING}
    parameters = ["self", *(["*"] if kw_only and table else [])]
    body = ["state = self.__dict__"]
    for name, field in table.items():
        if field.default is not dataclasses.MISSING:
            scope[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"factory_{name}"] = field.default_factory
            parameters.append(f"{name}=MISSING")
            body.append(f"if {name} is MISSING: {name} = factory_{name}()")
        else:
            parameters.append(name)
        body.append(f"state[{name!r}] = {name}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    lines = "\n ".join(body)
    exec(f"def __init__({', '.join(parameters)}):\n {lines}", scope)  # noqa: S102 - names are annotations of our classes
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _eq(names: tuple[str, ...]) -> Any:
    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, theirs = self.__dict__, other.__dict__
        return all(mine[n] is theirs[n] or mine[n] == theirs[n] for n in names)

    return __eq__


def _ordered(names: tuple[str, ...], holds: Callable[[Any, Any], bool]) -> Any:
    def compare(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, theirs = self.__dict__, other.__dict__
        return holds(tuple(mine[n] for n in names), tuple(theirs[n] for n in names))

    return compare


def _hash(names: tuple[str, ...]) -> Any:
    def __hash__(self: Any) -> int:  # noqa: N807
        state = self.__dict__
        return hash(tuple(state[n] for n in names))

    return __hash__


def _repr(names: tuple[str, ...]) -> Any:
    def __repr__(self: Any) -> str:  # noqa: N807
        inner = ", ".join(f"{n}={self.__dict__[n]!r}" for n in names)
        return f"{self.__class__.__qualname__}({inner})"

    return __repr__


def _refuse_set(self: Any, name: str, value: Any) -> None:  # noqa: ARG001 - the signature of __setattr__
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:  # noqa: ARG001 - the signature of __delattr__
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
