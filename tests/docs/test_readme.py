"""The README does what it says: its tutorial is run, its commands and links exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from compiler.cli import cli
from compiler.yamlio import load, load_all
from tests.docs.markdown import Block, blocks, commands, links, under
from tests.docs.project import run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECIPE = "gb200-nvke-ubuntu-training"


def test_the_first_command(copy: Path):
    """`make bundle RECIPE=...`, of the block that a reader meets first."""
    first = next(block for block in blocks(README) if block.kind == "sh")
    (command,) = [c for c in commands(first) if c.startswith("make bundle")]
    run(Block("sh", command, (), first.line), copy)
    name = command.partition("RECIPE=")[2].split()[0]
    assert (copy / "out" / name / "deploy.sh").is_file()


def test_look_around(copy: Path):
    run(Block("sh", f"make bundle RECIPE={RECIPE}", (), 0), copy)
    (block,) = under(README, "Look around")
    said = run(block, copy)
    assert f"out/{RECIPE}: checksums, files and order hold" in said


def test_a_component_is_added_by_a_folder_and_one_line(copy: Path):
    """No line of the compiler changes, and the component is there for all four deployers."""
    before = {path: path.read_bytes() for path in sorted((copy / "compiler").rglob("*.py"))}
    overlays = {path: path.read_text().splitlines() for path in (copy / "overlays").rglob("*.yaml")}
    components = {path.name for path in (copy / "components").iterdir()}
    for block in under(README, "Add a component"):
        run(block, copy)
    assert {path: path.read_bytes() for path in sorted((copy / "compiler").rglob("*.py"))} == before
    (name,) = {path.name for path in (copy / "components").iterdir()} - components
    added = [line for path, lines in overlays.items() for line in path.read_text().splitlines() if line not in lines]
    assert [line.strip() for line in added] == [f"- name: {name}"]
    bundle = copy.parent / "bundles" / RECIPE
    assert list((bundle / "components" / name / "manifests").iterdir())
    for file in (
        "deploy.sh",
        "helmfile.yaml",
        f"argocd/apps/{name}.yaml",
        f"flux/graph/{name}.yaml",
        f"namespaces/{name}.yaml",
    ):
        assert name in (bundle / file).read_text(), file


def test_make_it_yours(copy: Path):
    """The entry of bundlec.yaml that is shown compiles; the file's `spec` is what it shows."""
    (block,) = under(README, "Make it yours", "yaml")
    shown = load(block.text, "README.md").data
    shown = shown.get("spec", shown)
    own = load((copy / "bundlec.yaml").read_text(), "bundlec.yaml").data
    from compiler.yamlio import dump

    workspace = copy.parent / "mine"
    shutil.copytree(copy, workspace, ignore=shutil.ignore_patterns("out", ".venv", ".bundlec"))
    (workspace / "bundlec.yaml").write_text(dump({**own, "spec": {**own["spec"], **shown}}))
    (bundle,) = shown["bundles"]
    run(Block("sh", f"{copy}/.venv/bin/bundlec build {bundle['name']}", (), block.line), workspace)
    (recipe,) = load_all((workspace / "out" / bundle["name"] / "recipe.yaml").read_text(), "recipe.yaml")
    values = {c["name"]: c.get("values") for c in recipe.data["spec"]["components"]}
    for component, wanted in bundle["set"].items():
        assert _holds(values[component], wanted), component
    assert f"bundlec build {bundle['name']}" in README


def test_a_cluster_is_added_in_less_than_ten_lines(copy: Path):
    """Four settings and a private mirror, from the README alone; on every deployer."""
    (block,) = under(README, "Add a cluster", "yaml")
    lines = [line for line in block.text.splitlines() if not line.startswith("#")]
    assert len(lines) < 10
    (entry,) = load(block.text, "README.md").data
    workspace = copy.parent / "west"
    shutil.copytree(copy, workspace, ignore=shutil.ignore_patterns("out", ".venv", ".bundlec"))
    source = (workspace / "bundlec.yaml").read_text()
    indented = "".join(f"    {line}\n" for line in lines)
    (workspace / "bundlec.yaml").write_text(source.replace("  bundles:\n", f"  bundles:\n{indented}", 1))
    run(Block("sh", f"{copy}/.venv/bin/bundlec build {entry['name']}", (), block.line), workspace)
    out = workspace / "out" / entry["name"]
    text = {path: path.read_text() for path in out.rglob("*") if path.is_file()}
    assert not [path for path in (out / "deploy.sh", out / "helmfile.yaml") if "oci://ghcr.io" in text[path]]
    assert f"{entry['mirrors'][0]['to']}/" in text[out / "deploy.sh"]
    assert "name: west" in text[out / "argocd/apps/gpu-operator.yaml"]
    assert "storageClassName: fast-zonal" in text[out / "components/kube-prometheus-stack/values.yaml"]
    assert (
        f"estimatedNodeCount: {entry['placement']['nodes']}" in text[out / "components/nodewright-operator/values.yaml"]
    )


def test_flags_of_the_readme(copy: Path):
    (block,) = under(README, "Add a cluster")
    run(block, copy)
    values = (copy.parent / "bundles" / RECIPE / "components/gpu-operator/values.yaml").read_text()
    assert "- operator: Exists" in values


def _holds(values: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        return isinstance(values, dict) and all(_holds(values.get(key), value) for key, value in wanted.items())
    return values == wanted


# ---------------------------------------------------------------------------------------------------------------------
# What is named exists

SHELL = [block for block in blocks(README) if block.kind == "sh"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_commands_in_blocks_exist():
    for block in SHELL:
        for command in commands(block):
            words = shlex.split(command)
            if words[0] == "make":
                assert words[1] in TARGETS, f"README.md:{block.line}: make {words[1]}"
            if words[0].endswith("bundlec"):
                _known(words[1:], f"README.md:{block.line}")


def _known(words: list[str], where: str) -> None:
    assert words[0] in cli.commands, f"{where}: bundlec {words[0]}"
    command = cli.commands[words[0]]
    if isinstance(command, click.Group):
        assert words[1] in command.commands, f"{where}: bundlec {words[0]} {words[1]}"
        command = command.commands[words[1]]
    known = {option for parameter in command.params for option in parameter.opts}
    for word in words[1:]:
        if word.startswith("--"):
            assert word.partition("=")[0] in known, f"{where}: bundlec {words[0]} {word}"


def test_the_table_of_commands_names_all_and_only_what_is_there():
    section = README.partition("\n## Commands\n")[2].partition("\n## ")[0]
    rows = re.findall(r"`bundlec ([^`]+)`", section)
    assert {row.split()[0] for row in rows} == set(cli.commands)
    for row in rows:
        name = row.split()[0]
        known = {o for p in cli.commands[name].params if isinstance(p, click.Option) for o in p.opts}
        named = set(re.findall(r"--[a-z-]+", row))
        assert named <= known, f"bundlec {name}: {named - known}"
    for target in re.findall(r"`make ([a-z]+)", section):
        assert target in TARGETS, f"make {target}"


DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix() for pattern in ("*.md", "docs/**/*.md") for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str):
    document = ROOT / name
    for target in links(document.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{name}: {target}"
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.*)", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{name}: {target}"
