"""`records.dataclass` means what `dataclasses.dataclass` means: each check runs on both."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from compiler import records


@records.dataclass(frozen=True)
class Ours:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list, compare=False, repr=False)
    kind: ClassVar[str] = "k"

    @property
    def twice(self) -> int:
        return 2 * self.a


@dataclasses.dataclass(frozen=True)
class Theirs:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list, compare=False, repr=False)
    kind: ClassVar[str] = "k"

    @property
    def twice(self) -> int:
        return 2 * self.a


both = pytest.mark.parametrize("cls", [Ours, Theirs])


@both
def test_making_comparing_showing(cls: Callable[..., Any]) -> None:
    one = cls(1, c=[1])
    assert (one.a, one.b, one.c, one.twice, one.kind) == (1, "x", [1], 2, "k")
    assert one == cls(1, "x", [2])
    assert one != cls(2)
    assert one != (1, "x")
    assert hash(one) == hash(cls(1))
    assert repr(one) == f"{cls.__name__}(a=1, b='x')"
    assert cls(1).c is not cls(1).c


@both
def test_frozen(cls: Callable[..., Any]) -> None:
    one = cls(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.a


@both
def test_wrong_arguments(cls: Callable[..., Any]) -> None:
    for wrong in ((), (1, 2, 3, 4)):
        with pytest.raises(TypeError):
            cls(*wrong)
    with pytest.raises(TypeError):
        cls(1, nothing=2)


@both
def test_the_library_knows_it(cls: Callable[..., Any]) -> None:
    one = cls(1, c=[3])
    assert dataclasses.is_dataclass(one)
    assert [f.name for f in dataclasses.fields(one)] == ["a", "b", "c"]
    assert dataclasses.replace(one, a=5) == cls(5)
    assert dataclasses.replace(one, a=5).c is one.c
    assert dataclasses.asdict(one) == {"a": 1, "b": "x", "c": [3]}
    assert pickle.loads(pickle.dumps(one)) == one
    match one:
        case cls(a, b):  # type: ignore[misc]
            assert (a, b) == (1, "x")


def test_keywords_only() -> None:
    @records.dataclass(frozen=True, kw_only=True)
    class K:
        a: int
        b: int = 2

    assert (K(a=1).a, K(a=1).b) == (1, 2)
    with pytest.raises(TypeError):
        K(1)  # type: ignore[misc]


@pytest.mark.parametrize("decorator", [records.dataclass, dataclasses.dataclass])
def test_order(decorator: Any) -> None:
    class Plain:
        a: int
        b: str = field(default="x", compare=False)

    ordered = decorator(frozen=True, order=True)(Plain)
    one, two = ordered(1, "z"), ordered(2, "a")
    assert (one < two, one <= two, one > two, one >= two) == (True, True, False, False)
    assert (one < one, one <= ordered(1, "a"), one >= ordered(1, "a")) == (False, True, True)
    assert sorted([two, one]) == [one, two]
    with pytest.raises(TypeError):
        assert one < 1


def test_what_is_not_frozen_is_the_librarys() -> None:
    @records.dataclass
    class Mutable:
        a: int

    changed = Mutable(1)
    changed.a = 2
    assert changed == Mutable(2)


def test_post_init_runs() -> None:
    @records.dataclass(frozen=True)
    class Positive:
        a: int

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError(self.a)

    with pytest.raises(ValueError, match="-1"):
        Positive(-1)
