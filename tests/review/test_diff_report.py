"""The report as a whole: it fits a comment, says what it cut, calls nobody, and is the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.review.diff import order, tell
from compiler.review.diff.files import file_changes
from compiler.review.diff.model import BundleDiff, Report, Risk
from compiler.review.diff.render_md import LIMIT, markdown
from compiler.review.diff.report import report, risks
from compiler.review.diff.sides import compiled
from compiler.review.diff.snapshot import Snapshot
from compiler.review.diff.sources import Sources
from compiler.yamlio import load
from tests.support.repositories import repository
from tests.support.scratch import FILES, Change, appended, replaced, write_catalog


def compared(folder: Path, base: Mapping[str, Change], head: Mapping[str, Change]) -> tuple[Report, list[Snapshot]]:
    """The report about two catalogs, and the snapshots of bundle demo (none where it does not compile)."""
    sides = [
        compiled(write_catalog(folder / name, changes), (), name) for name, changes in (("base", base), ("head", head))
    ]
    (old, old_texts), (new, new_texts) = sides
    found = report(old, new, Sources(old_texts, new_texts), "bundlec diff --base main")
    return found, [side.bundles["demo"] for side, _ in sides if "demo" in side.bundles]


def many(count: int, value: str) -> dict[str, Change]:
    """A catalog whose component gamma sets many values and beta renders many objects."""
    objects = "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\ndata: {{a: {value}}}\n" for n in range(count)
    )
    return {
        "components/gamma/values.yaml": "".join(f"key{n}: {value}\n" for n in range(count)),
        "components/beta/manifests/widget.yaml": objects,
    }


class TestMarkdown:
    def test_a_huge_change_fits_a_comment_and_says_what_was_cut(self, tmp_path: Path):
        risky: Change = replaced("v4.5.6", "v5.0.0")
        head = {**many(900, "new"), "components/gamma/component.yaml": risky}
        found, _ = compared(tmp_path, many(900, "old"), head)
        whole = markdown(found, 10**9)
        told = markdown(found)
        assert len(whole) > LIMIT > len(told.encode()) > 0.9 * LIMIT
        assert "**Cut to fit a comment:**" in told
        assert "`bundlec diff --base main`" in told
        # The important stays: risks, causes, values before objects.
        assert "is another major version" in told
        assert "components/gamma/values.yaml:1" in told
        cut = {kind: int(number) for number, kind in re.findall(r"(\d+) (\w+?)s?\b", told.rsplit("**Cut", 1)[1])}
        assert told.count("- changed: ConfigMap") + cut["object"] == whole.count("- changed: ConfigMap") == 900
        assert told.count("- `key") + cut.get("value", 0) == 900
        assert "Cut to fit" not in whole

    @pytest.mark.parametrize("limit", [2500, 5000, 20000])
    def test_any_limit_holds_and_folds_are_closed(self, tmp_path: Path, limit: int):
        found, _ = compared(tmp_path, many(200, "old"), many(200, "new ä"))
        told = markdown(found, limit)
        assert len(told.encode()) <= limit
        assert told.count("<details>") == told.count("</details>")
        assert told.count("```") % 2 == 0

    def test_values_do_not_become_markup(self, tmp_path: Path):
        base = {"components/gamma/values.yaml": 'a: plain\nb: "1"\n'}
        evil = 'a: "`` <script> @everyone | **x** ```"\nb: "</details>"\n'
        told = markdown(compared(tmp_path, base, {"components/gamma/values.yaml": evil})[0])
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", told)
        for markup in ("<script>", "@everyone", "**x**", '</details>"'):
            assert markup not in outside

    def test_a_text_in_a_manifest_cannot_close_its_fence(self, tmp_path: Path):
        manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    %s\n"
        found, _ = compared(
            tmp_path,
            {"components/beta/manifests/widget.yaml": manifest % "```\n    x"},
            {"components/beta/manifests/widget.yaml": manifest % "```\n    y"},
        )
        assert "````diff" in markdown(found)


def test_the_same_report_every_time(tmp_path: Path):
    found = repository(tmp_path)
    found.write({"overlays/leaf.yaml": replaced('tag: "1.0"', 'tag: "1.1"')})
    for form in ("text", "md", "json"):
        assert found.diff("--format", form).out == found.diff("--format", form).out


def test_keys_in_another_order_are_no_change(tmp_path: Path):
    swapped = (
        'storage: {emptyDir: {medium: Memory}}\nimage:\n  tag: "0.9"\n  repository: example.org/alpha\nreplicas: 2\n'
    )
    found, _ = compared(tmp_path, {}, {"components/alpha/values.yaml": swapped})
    assert found.verdict == "No change: 1 bundle compiles to the same files."


def test_a_file_with_the_same_data_in_another_order_is_told_as_that():
    old, new = b"a: 1\nb: 2\n", b"b: 2\na: 1\n"
    path = "components/x/values.yaml"
    (change,) = file_changes({path: old}, {path: new}, ("demo", "demo"))
    assert change.reordered
    (change,) = file_changes({path: old}, {path: b"b: 2\na: true\n"}, ("demo", "demo"))
    assert not change.reordered


@pytest.mark.parametrize(("old", "new"), [("true", "1"), ('"1.30"', "1.3"), ('""', "null"), ("[]", "{}")])
def test_what_looks_alike_is_told(tmp_path: Path, old: str, new: str):
    base = {"components/gamma/values.yaml": f"x: {old}\nz: 1\n"}
    head = {"components/gamma/values.yaml": f"x: {new}\nz: 1\n" if new != "null" else "z: 1\n"}
    found, _ = compared(tmp_path, base, head)
    (component,) = found.bundles[0].components
    assert [entry.change.path for entry in component.values] == ["x"]


def test_a_value_that_moves_from_one_mixin_to_another_is_no_change(tmp_path: Path):
    paths = {"components/beta/component.yaml": appended("  mixinPaths: [greeting]\n")}
    ref = "  componentRefs:\n    - name: beta\n      overrides: {greeting: hi}\n"
    found, _ = compared(
        tmp_path, {**paths, "mixins/tuned.yaml": appended(ref)}, {**paths, "mixins/extra.yaml": appended(ref)}
    )
    assert found.verdict == "No change: 1 bundle compiles to the same files."
    assert found.idle == ("mixins/extra.yaml", "mixins/tuned.yaml")


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ("abcd", []),
        ("bacd", ["a is deployed after b; before: first"]),
        ("cdab", ["a and b are deployed after d; before: first"]),
        ("adbc", ["d is deployed after a; before: after c"]),
    ],
)
def test_releases_that_move_together_are_told_together(now: str, told: list[str]):
    """Never `x is deployed after y; before: after y`."""
    base, head = (_released(names) for names in ("abcd", now))
    assert [change.text for change in order._sequence(base, head)] == told


def _released(names: str) -> Any:
    return SimpleNamespace(releases=[SimpleNamespace(id=name) for name in names])


class TestCauses:
    def causes(self, tmp_path: Path, base: Mapping[str, Change], head: Mapping[str, Change]) -> list[str]:
        found, _ = compared(tmp_path, base, head)
        return [f"{c.place} {c.place.side}: {c.place.text}" for c in found.causes]

    def test_a_line_that_no_longer_wins(self, tmp_path: Path):
        base = {"overlays/leaf.yaml": replaced('image: {tag: "1.0"}', 'image: {tag: "1.0"}\n        replicas: 5')}
        assert self.causes(tmp_path, base, {}) == ["overlays/leaf.yaml:12 base: replicas: 5"]

    def test_a_mixin_that_is_taken_in(self, tmp_path: Path):
        new = FILES["mixins/extra.yaml"].replace("name: extra", "name: more") + (
            "  componentRefs:\n    - name: beta\n      overrides: {greeting: hi}\n"
        )
        more = {
            "mixins/more.yaml": new.replace("K8s.server.version", "OS.release.VERSION_ID").replace(">= 1.34", "24.04"),
            "components/beta/component.yaml": appended("  mixinPaths: [greeting]\n"),
        }
        head = {**more, "overlays/leaf.yaml": replaced("[tuned, extra]", "[tuned, extra, more]")}
        assert "overlays/leaf.yaml:7 head: mixins: [tuned, extra, more]" in self.causes(tmp_path, more, head)

    def test_a_namespace_is_one_cause_with_all_that_follows(self, tmp_path: Path):
        """Written over two lines: neither the line above nor the check that looks into the namespace was edited."""
        block = replaced("  namespace: {name: beta-system}\n", "  namespace:\n    name: beta-system\n")
        check = appended("  checks:\n    up: {deployment: {name: beta}}\n  readiness: {ready: {checks: [up]}}\n")
        moved = replaced("name: beta-system", "name: widgets")
        base: dict[str, Change] = {"components/beta/component.yaml": lambda text: check(block(text))}
        head: dict[str, Change] = {"components/beta/component.yaml": lambda text: moved(check(block(text)))}
        assert self.causes(tmp_path, base, head) == ["components/beta/component.yaml:6 head: name: widgets"]

    def test_a_values_file_that_is_chosen(self, tmp_path: Path):
        more = {"components/alpha/values-big.yaml": "replicas: 9\n"}
        head = {
            **more,
            "overlays/leaf.yaml": replaced(
                "    - name: alpha\n", "    - name: alpha\n      valuesFile: values-big.yaml\n"
            ),
        }
        base = {**more, "overlays/base.yaml": FILES["overlays/base.yaml"]}
        assert self.causes(tmp_path, base, head) == ["overlays/leaf.yaml:10 head: valuesFile: values-big.yaml"]

    def test_a_template(self, tmp_path: Path):
        head = {"components/beta/manifests/settings.yaml.j2": appended("  more: yes-please\n")}
        expected = "components/beta/manifests/settings.yaml.j2:7 head: more: yes-please"
        assert self.causes(tmp_path, {}, head) == [expected]

    def test_a_setting_of_one_bundle(self, tmp_path: Path):
        head = {"bundlec.yaml": appended("      argocd: {selfHeal: false}\n")}
        assert self.causes(tmp_path, {}, head) == ["bundlec.yaml:8 head: argocd: {selfHeal: false}"]

    def test_a_new_pin_in_an_overlay(self, tmp_path: Path):
        pin = "    - name: gamma\n      version: v4.5.7\n      reason: a fix\n      dependencyRefs: [beta]\n"
        head = {"overlays/leaf.yaml": replaced("    - name: gamma\n      dependencyRefs: [beta]\n", pin)}
        assert self.causes(tmp_path, {}, head) == ["overlays/leaf.yaml:15 head: version: v4.5.7"]


def test_a_new_prefix_is_one_setting_and_one_risk_whatever_files_follow(tmp_path: Path):
    head = {"bundlec.yaml": appended("      prefix: west\n")}
    found, _ = compared(tmp_path, {}, head)
    (bundle,) = found.bundles
    assert [e.change.path for e in bundle.fields] == ["settings.prefix"]
    assert [(r.kind, r.severity) for r in bundle.risks] == [("second-copy", "high")]
    assert len(bundle.files) > 20
    assert {f.part for f in bundle.files} == {"told"}
    assert markdown(found).count("\n") < 30
    other = {"bundlec.yaml": appended("      prefix: west\n      argocd: {selfHeal: false}\n")}
    (bundle,) = compared(tmp_path / "more", {}, other)[0].bundles
    hunks = {line for f in bundle.files for line in f.hunk if line[0] in "+-"}
    assert {line.strip("+- ") for line in hunks} == {"selfHeal: true"}  # the default is to leave it out


EDITS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "comment": ("components/alpha/values.yaml", lambda text: f"# words\n{text}"),
    "blanks": ("overlays/leaf.yaml", lambda text: text.replace('tag: "1.0"', 'tag:   "1.0"')),
    "value": ("components/alpha/values.yaml", lambda text: text.replace("replicas: 2", "replicas: 3")),
    "overridden": ("components/alpha/values.yaml", lambda text: text.replace('tag: "0.9"', 'tag: "0.8"')),
    "order": ("components/alpha/values.yaml", lambda text: text.replace("replicas: 2\n", "") + "replicas: 2\n"),
    "object": ("components/beta/manifests/widget.yaml", lambda text: text.replace("size: 3", "size: 4")),
    "template": ("components/beta/manifests/settings.yaml.j2", lambda text: text.replace("settings\n", "others\n")),
    "words": ("components/gamma/component.yaml", lambda text: text + "  operations: [Look twice.]\n"),
    "timeout": ("components/alpha/component.yaml", lambda text: text.replace("5m", "7m")),
    "wait": ("components/gamma/component.yaml", lambda text: text + "  install: {timeout: 20m}\n"),
    "drift": (
        "components/gamma/component.yaml",
        lambda text: text + "  drift: [{group: apps, kind: Deployment, paths: [/spec/replicas], reason: scaled}]\n",
    ),
    "prerequisite": (
        "components/gamma/component.yaml",
        lambda text: text + "  prerequisites: [{id: a, text: Do this first.}]\n",
    ),
    "edge": ("overlays/leaf.yaml", lambda text: text.replace("[beta]", "[]")),
    "setting": ("bundlec.yaml", lambda text: text + "      flux: {source: {interval: 7m}}\n"),
    "constraint": ("mixins/extra.yaml", lambda text: text.replace("1.34", "1.35")),
    "description": ("overlays/leaf.yaml", lambda text: text.replace("spec:\n", "spec:\n  description: Words.\n")),
    "off": ("bundlec.yaml", lambda text: text + "      disable: [{component: gamma, reason: no need}]\n"),
}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.sampled_from(sorted(EDITS)), max_size=5))
def test_the_report_is_empty_exactly_when_the_files_are_equal(
    tmp_path_factory: pytest.TempPathFactory, names: set[str]
):
    changed: dict[str, Any] = {}
    for name in sorted(names):
        path, edit = EDITS[name]
        changed[path] = edit(changed.get(path, FILES[path]))
    found, snapshots = compared(tmp_path_factory.mktemp("edits"), {}, changed)
    (bundle,) = found.bundles
    if len(snapshots) < 2:
        assert bundle.status == "broken"
        return
    old, new = (snapshot.files for snapshot in snapshots)
    differing = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    assert {file.path for file in bundle.files} == differing
    assert found.differs == bool(differing)
    # Every value that differs in an emitted values file has an entry.
    for component in ("alpha", "gamma"):
        path = f"components/{component}/values.yaml"
        sides = [load(files[path].decode(), path).data for files in (old, new) if path in files]
        if len(sides) == 2 and sides[0] != sides[1]:
            assert any(c.name == component and c.values for c in bundle.components)


def test_each_edit_of_the_property_is_seen_as_what_it_is(tmp_path: Path):
    """The property would hold of a report that knows nothing; this says what each edit does."""
    silent = {"comment", "blanks", "overridden", "order"}
    for name, (path, edit) in EDITS.items():
        found, _ = compared(tmp_path / name, {}, {path: edit(FILES[path])})
        assert found.differs == (name not in silent), name


def test_a_risk_names_its_component_even_where_a_namespace_has_the_same_name():
    moved = Risk("second-copy", "high", "x", "moves from namespace x to y")
    assert tell.risk(moved) == "`x`: moves from namespace x to y"
    assert tell.risk(Risk("gate-added", "low", "x", "a new gate holds back x")) == "a new gate holds back x"


def test_every_edited_line_of_a_manifest_is_a_cause(tmp_path: Path):
    path = "components/beta/manifests/widget.yaml"
    two = "---\napiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: two\nspec:\n  size: 1\n"
    found = repository(tmp_path, {path: lambda text: text + two})
    found.write(
        {
            path: lambda text: (
                "# A comment.\n"
                + text.replace("name: one", "name: one\n  labels: {a: b}")
                .replace("size: 3", "size: 4")
                .replace("size: 1", "size: 2")
            )
        }
    )
    objects = found.json()["bundles"][0]["components"][0]["objects"]
    lines = {o["name"]: [o["at"]["line"], *(p["line"] for p in o.get("alsoAt", ()))] for o in objects}
    assert lines == {"one": [6, 8], "two": [15]}
    assert f"changed: Widget beta-system/one  [{path}:6, 8]" in found.diff().out
    causes = found.json()["causes"]
    assert [(c["at"]["line"], c["changes"]) for c in causes] == [(n, {"object": 1}) for n in (6, 8, 15)]


def test_a_renamed_overlay_is_told_once_whatever_else_the_bundles_are_made_of(tmp_path: Path):
    """Neither as a cause and as without effect, nor once for every bundle."""
    other = FILES["overlays/leaf.yaml"].replace("leaf}", "other}").replace("any-cloud", "other-cloud")
    found = repository(
        tmp_path,
        {"overlays/other.yaml": other, "bundlec.yaml": appended("    - {name: second, recipe: other}\n")},
    )
    leaf, root = ("  base: base\n", "  base: root\n")
    found.write(
        {
            "overlays/base.yaml": None,
            "overlays/root.yaml": FILES["overlays/base.yaml"].replace("{name: base}", "{name: root}"),
            "overlays/leaf.yaml": lambda text: text.replace(leaf, root),
            "overlays/other.yaml": lambda text: text.replace(leaf, root),
        }
    )
    for form in ("text", "md"):
        told = found.diff("--format", form).out
        assert "(moved)" not in told
        assert told.count('-"base" +"root"') + told.count('["base", "leaf"]') == 1
        assert told.count("changed: README.md") == 1
        assert "the same words in each; shown: demo" in told
    assert [c["at"]["file"] for c in found.json()["causes"]] == ["overlays/root.yaml"]


def test_words_that_differ_are_not_taken_for_alike():
    assert tell._words_of(("-| a | x, y |", "+| a | z, y |")) == tell._words_of(("-| a | x |", "+| a | z |"))
    assert tell._words_of(("-| a | x, y |", "+| a | z, y |")) != tell._words_of(("-| a | x |", "+| a | w |"))
    assert tell._words_of(("-| a | x, y |",)) is None


def test_rights_of_the_gates_of_several_bundles_are_told_once():
    """They differ in the prefix only; what one bundle alone has keeps its name."""

    def bundle(name: str, *texts: str) -> BundleDiff:
        return BundleDiff(name, "changed", risks=tuple(Risk("rbac", "low", "", text) for text in texts))

    text = "Role one/%s-gates binds %s-gates to ServiceAccount %s-gates/gates"
    several = [
        bundle("x", text.replace("%s", "ab"), "Role one/ab-gates grants more"),
        bundle("y", text.replace("%s", "c-d")),
    ]
    (first, names), (second, alone) = risks(several)
    assert first.text == text.replace("%s", "(prefix)")
    assert names == ("x", "y")
    assert (second.text, alone) == ("Role one/ab-gates grants more", ("x",))
