"""Which values a template looks at: it is rendered once more, over values that remember who asked.

Only what is really read counts: a branch that the template does not enter reads nothing. A list counts as one value,
since lists do not merge and came from one layer.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

from compiler.errors import Collector
from compiler.model import ManifestSource, Recipe, ResolvedComponent
from compiler.plan.manifests import Renderer
from compiler.source import Path


def reads(recipe: Recipe, component: ResolvedComponent, source: ManifestSource) -> list[Path]:
    """The paths that rendering `source` looks at, sorted; the first step is values, inputs, recipe or component.

    Empty for a static manifest. A path that leads to nothing was asked for and not found.
    """
    if source.documents is not None:
        return []
    recorder = _Recorder(recipe)
    recorder.render(source.text, source.file, component, Collector())
    whole = sorted(recorder.seen, key=lambda path: [str(step) for step in path])
    # What lies below a map that was read as a whole need not be told again.
    return [path for path in whole if not any(path[:n] in recorder.seen for n in range(1, len(path)))]


class _Recorder(Renderer):
    """A renderer whose context remembers what is looked at."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self.seen: set[Path] = set()

    def context(self, component: ResolvedComponent) -> Mapping[str, Any]:
        """The context of a template, each map of it a proxy."""
        return {
            name: _Watched(value, (name,), self.seen) if isinstance(value, Mapping) else value
            for name, value in super().context(component).items()
        }


class _Watched(dict[str, Any]):
    """A map that notes which of its keys are read; read as a whole (iterated, compared, dumped), it notes itself."""

    def __init__(self, data: Mapping[str, Any], path: Path, seen: set[Path]) -> None:
        super().__init__(data)
        self._path = path
        self._seen = seen

    __hash__ = None

    def __getitem__(self, key: str) -> Any:
        try:
            value = super().__getitem__(key)
        except KeyError:
            self._seen.add((*self._path, key))
            raise
        if isinstance(value, Mapping):
            return _Watched(value, (*self._path, key), self._seen)
        self._seen.add((*self._path, key))
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is noted."""
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        self._seen.add((*self._path, str(key)))
        return super().__contains__(key)

    def _whole(self) -> None:
        self._seen.add(self._path)

    def __iter__(self) -> Iterator[str]:
        self._whole()
        return super().__iter__()

    def __len__(self) -> int:
        self._whole()
        return super().__len__()

    def __bool__(self) -> bool:
        self._whole()
        return super().__len__() > 0

    def __eq__(self, other: object) -> bool:
        self._whole()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """All items; the map counts as read."""
        self._whole()
        return dict(super().items()).items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """All values; the map counts as read."""
        self._whole()
        return dict(super().items()).values()

    def keys(self) -> Any:
        """All keys; the map counts as read."""
        self._whole()
        return dict(super().items()).keys()
