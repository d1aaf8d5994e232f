"""`build`: what it writes, what it leaves alone, what it says, and `--check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.scratch import Ran, appended, bundlec, replaced, state, told, tree, write_catalog

LEAF = "overlays/leaf.yaml"
TWO = appended("    - {name: two, recipe: leaf, profile: {mode: fancy}}\n")


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return write_catalog(tmp_path / "w")


def test_what_it_writes_and_says(catalog: Path):
    ran = bundlec("build", "demo", cwd=catalog)
    count = len(tree(catalog / "out/demo"))
    assert ran == Ran(
        0,
        "demo  recipe leaf, profile mode=plain\n"
        "  3 components in 3 releases (2 charts), 1 gate, deployers: deploy.sh, helmfile, argocd, flux\n"
        f"  out/demo: {count} added, 0 changed, 0 removed (0 unchanged)\n",
        "",
    )
    names = {name.split("/")[0] for name in tree(catalog / "out/demo")}
    assert names == {
        "README.md", "argocd", "bundle.yaml", "checksums.txt", "components", "deploy.sh", "flux", "helmfile.yaml", "lib",
        "namespaces", "preflight.sh", "recipe.yaml", "undeploy.sh",
    }  # fmt: skip
    assert sorted(p.name for p in catalog.iterdir()) == [
        ".bundlec",
        "bundlec.yaml",
        "components",
        "mixins",
        "out",
        "overlays",
    ]
    assert (catalog / ".bundlec/.gitignore").read_text() == "*\n"


def test_a_recipe_without_an_entry_is_a_bundle_of_its_name(catalog: Path):
    assert bundlec("build", "leaf", cwd=catalog).status == 0
    bundlec("build", "demo", cwd=catalog)
    demo, leaf = catalog / "out/demo/components", catalog / "out/leaf/components"
    assert (demo / "alpha/values.yaml").read_bytes() == (leaf / "alpha/values.yaml").read_bytes()


def test_what_changed_is_said_and_nothing_else_is_written(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    count = len(tree(catalog / "out/demo"))
    before = tree(catalog / "out")
    write_catalog(catalog, {LEAF: replaced('tag: "1.0"', 'tag: "1.1"')})
    ran = bundlec("build", "--all", cwd=catalog)
    after = tree(catalog / "out")
    changed = sorted(name for name in before if before[name] != after[name])
    assert changed == [
        "demo/bundle.yaml",
        "demo/checksums.txt",
        "demo/components/alpha/values.yaml",
        "demo/deploy.sh",
        "demo/helmfile.yaml",
        "demo/recipe.yaml",
    ]
    said = f"out/demo: 0 added, {len(changed)} changed, 0 removed ({count - len(changed)} unchanged)"
    assert said in ran.out
    assert (
        b'tag: "1.1"' in after["demo/components/alpha/values.yaml"]
        or b"tag: '1.1'" in after["demo/components/alpha/values.yaml"]
    )


def test_a_component_that_goes_takes_its_files_along(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    write_catalog(
        catalog,
        {
            LEAF: lambda text: replaced("    - name: gamma\n      dependencyRefs: [beta]\n", "")(
                text[: text.index("  profile:")]
            )
        },
    )
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 0, ran.err
    assert [name for name in tree(catalog / "out") if "gamma" in name] == []
    assert not (catalog / "out/demo/components/gamma").exists()


def test_a_bundle_with_flags_goes_elsewhere(catalog: Path, tmp_path: Path):
    bundlec("build", "demo", cwd=catalog)
    before = state(catalog / "out")
    ran = bundlec("build", "demo", "--deployer", "flux", "--profile", "mode=fancy", "--out", "../try", cwd=catalog)
    assert ran.status == 0, ran.err
    names = tree(tmp_path / "try/demo")
    assert {"flux/root.yaml", "components/gamma/values.yaml"} <= names.keys()
    assert not {"helmfile.yaml", "deploy.sh", "argocd/root.yaml"} & names.keys()
    assert names["components/gamma/values.yaml"] == b"fancy: true\n"
    assert f"  ../try/demo: {len(names)} added" in ran.out
    assert state(catalog / "out") == before


@pytest.mark.parametrize(
    "flags",
    [
        ["--profile", "mode=plain"],
        ["--deployer", "flux", "--deployer", "argocd", "--deployer", "helmfile", "--deployer", "deploy.sh"],
    ],
)
def test_flags_that_say_what_is_so_anyway(catalog: Path, flags: list[str]):
    bundlec("build", "demo", cwd=catalog)
    assert "nothing changed" in bundlec("build", "demo", *flags, cwd=catalog).out


def test_the_folder_of_bundles_is_a_setting(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": replaced("spec:\n", "spec:\n  out: build/bundles\n")})
    assert bundlec("build", "--all", cwd=catalog).status == 0
    assert (catalog / "build/bundles/demo/bundle.yaml").is_file()
    assert b"build/bundles/demo" in tree(catalog / "build")["bundles/demo/argocd/root.yaml"]


# ---------------------------------------------------------------------------------------------------------------------
# What belongs to others


def test_an_edited_file_is_overwritten_and_said(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    (catalog / "out/demo/helmfile.yaml").write_text("edited\n")
    ran = bundlec("build", "--all", cwd=catalog)
    assert "  overwritten: edited by hand since the last build: helmfile.yaml\n" in ran.out
    assert (catalog / "out/demo/helmfile.yaml").read_text() != "edited\n"


def test_a_file_of_somebody_else_stops_its_bundle_only(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": TWO})
    bundlec("build", "--all", cwd=catalog)
    (catalog / "out/demo/notes.txt").write_text("mine")
    before = state(catalog / "out/demo")
    write_catalog(catalog, {"bundlec.yaml": TWO, LEAF: replaced('tag: "1.0"', 'tag: "1.1"')})
    ran = bundlec("build", "--all", cwd=catalog)
    assert (ran.status, ran.out) == (1, "")
    assert told(ran.err) == [
        "out/demo/notes.txt:1:1: [BC5001] not part of the bundle: a build would delete it | move it out of the bundle's folder, or delete it; nothing was written"
    ]
    assert ran.err.endswith("\n1 error; written: two\n")
    assert state(catalog / "out/demo") == before
    assert b"1.1" in (catalog / "out/two/components/alpha/values.yaml").read_bytes()


def test_a_folder_that_is_no_bundle_is_refused(catalog: Path):
    (catalog / "mine/demo").mkdir(parents=True)
    (catalog / "mine/demo/thesis.txt").write_text("years of work")
    ran = bundlec("build", "demo", "--out", "mine", cwd=catalog)
    assert [line.partition(" | ")[0] for line in told(ran.err)] == [
        "mine/demo: [BC5001] the folder is not empty and holds no checksums.txt: no build of ours made it"
    ]
    assert tree(catalog / "mine") == {"demo/thesis.txt": b"years of work"}


def test_one_bundle_that_fails_keeps_all_as_they_were(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": TWO})
    bundlec("build", "--all", cwd=catalog)
    before = state(catalog / "out")
    write_catalog(
        catalog,
        {
            "bundlec.yaml": lambda text: TWO(text).replace("mode: fancy", "mode: none"),
            LEAF: replaced('tag: "1.0"', 'tag: "1.1"'),
        },
    )
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.err.endswith("1 error; nothing was written\n")
    assert state(catalog / "out") == before


def test_bundles_that_are_not_listed_any_more(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": TWO})
    bundlec("build", "--all", cwd=catalog)
    write_catalog(catalog, {"bundlec.yaml": lambda text: text})
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 0
    assert ran.err == "note: out/two is no bundle that bundlec.yaml lists; remove it, or list it\n"
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert (ran.status, ran.out) == (4, "unlisted  out/two/\n")
    assert ran.err.endswith("list in bundlec.yaml or remove what is unlisted\n")
    assert bundlec("build", "demo", "--check", cwd=catalog).status == 0


def test_the_committed_folder_by_its_name_takes_no_flags(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    before = state(catalog / "out")
    for out in ("out", "./out", str(catalog / "out")):
        ran = bundlec("build", "demo", "--deployer", "flux", "--out", out, cwd=catalog)
        assert ran.status == 1
        assert "BC5003" in ran.err
    assert state(catalog / "out") == before


def test_check_sees_what_nobody_owns_beside_the_bundles(catalog: Path):
    """A folder named like a recipe that no bundle has, and files: neither is kept up to date by anybody."""
    bundlec("build", "--all", cwd=catalog)
    recipe = next(path.stem for path in (catalog / "overlays").rglob("*.yaml") if path.stem not in ("demo", "base"))
    (catalog / "out" / recipe).mkdir()
    (catalog / "out" / "note.txt").write_text("mine")
    (catalog / "out" / ".hidden").write_text("mine")
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    expected = sorted([f"unlisted  out/{recipe}/", "unlisted  out/note.txt"])
    assert (ran.status, sorted(ran.out.splitlines())) == (4, expected)


def test_case_57_nothing_to_build_is_not_everything_built(catalog: Path):
    text = "apiVersion: bundlec.dev/v1alpha1\nkind: Workspace\nspec:\n  bundles: []\n"
    write_catalog(catalog, {"bundlec.yaml": text})
    for options in ([], ["--check"]):
        ran = bundlec("build", "--all", *options, cwd=catalog)
        assert ran.status == 1
        assert told(ran.err) == [
            "bundlec.yaml:1:1: [BC2001] bundlec.yaml lists no bundle: nothing to build | name a recipe (`bundlec list` prints them), or add an entry to `bundles`"
        ]


# ---------------------------------------------------------------------------------------------------------------------
# --check


def test_check_of_what_was_never_built(catalog: Path):
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert ran.status == 4
    assert ran.out.startswith("missing   out/demo/ (")
    assert ran.err == "1 difference from what the sources compile to; `bundlec build` writes the files\n"
    assert not (catalog / "out").exists()


def test_check_of_what_was_just_built(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": TWO})
    bundlec("build", "--all", cwd=catalog)
    assert bundlec("build", "--all", "--check", cwd=catalog) == Ran(
        0, "2 bundles are what the sources compile to\n", ""
    )


def test_check_tells_every_difference_and_writes_nothing(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    out = catalog / "out/demo"
    (out / "README.md").unlink()
    (out / "helmfile.yaml").write_text("edited\n")
    (out / "deploy.sh").chmod(0o644)
    (out / "notes.txt").write_text("mine")
    before = state(catalog / "out")
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert ran.status == 4
    assert ran.out.splitlines() == [
        "missing   out/demo/README.md",
        "mode      out/demo/deploy.sh",
        "changed   out/demo/helmfile.yaml",
        "not ours  out/demo/notes.txt",
        "",
        "--- out/demo/helmfile.yaml",
        *ran.out.splitlines()[6:],
    ]
    assert ran.out.splitlines()[7] == "-edited"
    assert ran.out.splitlines()[8].startswith("+")
    assert "lines more" in ran.out.splitlines()[-1]
    assert ran.err == "4 differences from what the sources compile to; `bundlec build` writes the files\n"
    machine = bundlec("build", "--all", "--check", "--format", "json", cwd=catalog)
    assert machine.status == 4
    assert json.loads(machine.out) == {
        "bundles": [
            {
                "bundle": "demo",
                "path": "out/demo",
                "missing": ["README.md"],
                "changed": ["helmfile.yaml"],
                "extra": ["notes.txt"],
                "modes": ["deploy.sh"],
            }
        ],
        "unlisted": [],
        "diagnostics": [],
    }
    assert state(catalog / "out") == before


def test_check_after_a_change_of_the_sources(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    write_catalog(catalog, {"components/beta/values.yaml": "greeting: good day\n"})
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert ran.status == 4
    assert "changed   out/demo/components/beta/manifests/configmap-settings.yaml\n" in ran.out
    # The short diff: `-` on disk, `+` compiled, what tells most first.
    shown = ran.out.partition("\n\n")[2].splitlines()
    assert shown[0] == "--- out/demo/components/beta/manifests/configmap-settings.yaml"
    assert shown[2:4] == ["-  greeting: hello", "+  greeting: good day"]
    assert not [line for line in shown[4:] if line.startswith("--- ")], "the rest differs in hashes only"


def test_the_short_diff_shows_a_change_of_many_bundles_once_and_no_more_than_fits(catalog: Path):
    write_catalog(catalog, {"bundlec.yaml": TWO})
    bundlec("build", "--all", cwd=catalog)
    write_catalog(catalog, {"components/beta/values.yaml": "greeting: good day\n"})
    for name in ("README.md", "undeploy.sh", "preflight.sh", "lib/gate", "lib/prepare"):
        (catalog / "out/demo" / name).write_text("\x1b[2Jmine\n")
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert ran.status == 4
    shown = ran.out.partition("\n\n")[2].splitlines()
    assert sum(line.endswith("/configmap-settings.yaml") for line in shown) == 1
    assert len([line for line in shown if line[:1] in "+-@" and line[:4] != "--- "]) <= 40
    assert shown[-1].endswith(" more")
    assert "\x1b" not in ran.out


def test_check_of_sources_that_are_wrong_is_no_drift(catalog: Path):
    bundlec("build", "--all", cwd=catalog)
    write_catalog(catalog, {LEAF: replaced("base: base", "base: bose")})
    ran = bundlec("build", "--all", "--check", cwd=catalog)
    assert ran.status == 1
    assert ran.err.endswith("\n1 error\n")


# ---------------------------------------------------------------------------------------------------------------------
# results for machines, hints


def test_results_for_machines(catalog: Path):
    ran = bundlec("build", "--all", "--format", "json", cwd=catalog)
    names = sorted(tree(catalog / "out/demo"))
    assert json.loads(ran.out) == {
        "bundles": [
            {
                "bundle": "demo",
                "recipe": "leaf",
                "path": "out/demo",
                "added": names,
                "changed": [],
                "removed": [],
                "edited": [],
                "unchanged": 0,
            }
        ],
        "diagnostics": [],
    }


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("https://git.example.com/platform/bundles.git", True),
        ("https://user@GIT.example.com:8443/x.git", True),
        ("git@example.com:platform/bundles.git", True),
        ("https://git.example.org/bundles.git", False),
        ("https://git.acme.dev/example.com/bundles.git", False),
        ("https://notexample.com/bundles.git", False),
    ],
)
def test_a_placeholder_repository_is_pointed_out(catalog: Path, url: str, hint: bool):
    write_catalog(catalog, {"bundlec.yaml": replaced("https://git.example.org/bundles.git", url)})
    ran = bundlec("build", "demo", "--deployer", "deploy.sh", "--deployer", "argocd", "--out", "x", cwd=catalog)
    text = f"note: the bundles read themselves from {url}; set `git.url` in bundlec.yaml to your repository\n"
    assert ran.status == 0, ran.err
    assert ran.err == (text if hint else "")


def test_a_target_that_cannot_be_written(catalog: Path):
    (catalog / "out").write_text("a file")
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 1
    assert told(ran.err)[0].startswith("out/demo: [BC5002] cannot be written: ")
    assert (catalog / "out").read_text() == "a file"


def test_links_in_the_way(catalog: Path, tmp_path: Path):
    """out/ itself may be a link to where bundles are kept; a bundle may not."""
    (tmp_path / "kept").mkdir()
    (catalog / "out").symlink_to(tmp_path / "kept")
    assert bundlec("build", "--all", cwd=catalog).status == 0
    assert (tmp_path / "kept/demo/bundle.yaml").is_file()
    (tmp_path / "kept/demo").rename(tmp_path / "other")
    (tmp_path / "kept/demo").symlink_to(tmp_path / "other")
    ran = bundlec("build", "--all", cwd=catalog)
    assert ran.status == 1
    assert "[BC5001] the target is a symbolic link, not a folder" in told(ran.err)[0]


@pytest.mark.parametrize(
    "place", ["overlays", "components/alpha", "mixins/new/deeper", "out/demo", "out/demo/flux/new"]
)
def test_a_place_among_the_sources_or_in_a_bundle_is_refused(catalog: Path, place: str):
    """What is written there would be read as a source by the next run, or be in the way of the next build."""
    assert bundlec("build", "--all", cwd=catalog).status == 0
    before = {p: p.read_bytes() for p in catalog.rglob("*") if p.is_file() and ".bundlec" not in p.parts}
    ran = bundlec("build", "demo", "--out", place, cwd=catalog)
    assert (ran.status, ran.out) == (1, "")
    assert f"[BC5001] --out {place} lies" in ran.err
    assert "name a folder of its own with --out" in ran.err
    assert {p: p.read_bytes() for p in catalog.rglob("*") if p.is_file() and ".bundlec" not in p.parts} == before


def test_words_that_are_too_long_for_the_name_of_a_file_are_findings(catalog: Path, tmp_path: Path):
    """A flag has no file behind it to show; a folder that cannot be is told."""
    long = "x" * 300
    ran = bundlec("build", "demo", "--storage-class", "a" * 250, "--out", str(tmp_path / "o"), cwd=catalog)
    assert ran.status == 1
    assert "[BC2006]" in ran.err
    ran = bundlec("build", "demo", "--system-node-selector", f"{long}=x", "--out", str(tmp_path / "o"), cwd=catalog)
    assert ran.status == 1
    assert "[BC" in ran.err
    ran = bundlec("build", "demo", "--out", long, cwd=catalog)
    assert ran.status == 2
    assert "File name too long" in ran.err
