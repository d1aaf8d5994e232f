"""The shape of the compiler: imports point down, each outside thing has one door, and no component is special."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "compiler").rglob("*.py"))
}
STAGES = {"load", "resolve", "plan", "emit", "write"}
TOP = {"cli": 4, "report": 3, "review": 3, "pipeline": 2, "proof": 2}  # stages are 1, the ground is 0
DEPLOYERS = ("deploysh", "helmfile", "argocd", "flux")
WRITES = r"\.write_(text|bytes)\(|\bos\.(replace|rename|mkdir|makedirs)\(|\.mkdir\(|\bopen\([^)]*[\"'][rwaxb+]*[wax+]"


def imports(name: str) -> Iterator[str]:
    """Modules of ours that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "compiler")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "compiler":
            deeper = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module if module in MODULES else str(node.module) for module in deeper)


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def rank(module: str) -> int:
    return 1 if part(module) in STAGES else TOP.get(part(module), 0)


def deployer(module: str) -> str | None:
    return next((d for d in DEPLOYERS if module.startswith(f"compiler.emit.{d}")), None)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str):
    for other in imports(name):
        assert rank(other) <= rank(name), f"{name} imports {other}, which stands above it"
        if rank(name) == rank(other) == 1:
            assert part(name) == part(other), f"stage {part(name)} imports stage {part(other)}"
        if deployer(name) and deployer(other):
            assert deployer(name) == deployer(other), f"emitter {name} imports emitter {other}"


@pytest.mark.parametrize("name", MODULES)
def test_every_outside_thing_has_one_door(name: str):
    text = MODULES[name].read_text()
    doors = {
        r"^\s*(import|from) (yaml|ruamel)\b": {"compiler.yamlio"},
        r"^\s*(import|from) subprocess\b|\bos\.(system|popen|exec\w+|spawn\w+)\(": {"compiler.tools"},
        r"\bos\.(environ|getenv)\b|\bos\.chdir\(": {"compiler.cli"},
        WRITES: {
            "compiler.write",
            "compiler.load.cache",
            "compiler.emit.templates",
        },  # bundles; what was parsed, compiled
        r"^\s*(import|from) (random|socket|datetime)\b|\b(urllib\.request|http\.client)\b|\btime\.time\(": set(),
    }
    for pattern, allowed in doors.items():
        found = re.search(pattern, text, re.MULTILINE)
        inside = any(name == door or name.startswith(f"{door}.") for door in allowed)
        assert inside or not found, f"{name} has `{found[0].strip()}`; the door is {sorted(allowed)}"


def test_no_component_has_a_name_in_the_compiler():
    names = [path.parent.name for path in (ROOT / "components").glob("*/component.yaml")]
    assert names
    word = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
    sources = [path for end in ("*.py", "*.j2") for path in sorted((ROOT / "compiler").rglob(end))]
    lines = ((path, number, line) for path in sources for number, line in enumerate(path.read_text().splitlines(), 1))
    assert [f"{p.relative_to(ROOT)}:{n}: {line.strip()}" for p, n, line in lines if word.search(line)] == []


def test_modules_stay_small():
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_module_keeps_mutable_state():
    """A module-level list or dict is a constant only if its type says that nothing changes it."""
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            frozen = isinstance(node, ast.AnnAssign) and re.match(r"(Mapping|Sequence)\b", ast.unparse(node.annotation))
            exempt = frozen or any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)
            mutable = isinstance(value, ast.List | ast.Dict | ast.ListComp | ast.DictComp)
            assert exempt or not mutable, f"{name}:{node.lineno} holds a mutable value"
            assert not any(isinstance(n, ast.Global) for n in ast.walk(node)), f"{name}:{node.lineno} has `global`"
