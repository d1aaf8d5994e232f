"""Values from the overlay to what a chart's templates see, through real Helm 3 and 4."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support import ALPHA, LEAF, WORKSPACE, as_helm_reads, built, documents, refused, rendered
from tests.support.scratch import appended, bundlec, replaced, told, write_catalog

TAG = '        image: {tag: "1.0"}\n'
SETTINGS = "components/beta/manifests/settings.yaml.j2"
VALUES = "components/alpha/values.yaml"


def overrides(text: str) -> Any:
    """A change that puts these lines into the overrides of `alpha`."""
    return replaced(TAG, textwrap.indent(textwrap.dedent(text).strip("\n"), "        ") + "\n")


QUOTED = [
    # case 1
    "72225e2", "1e3", "5319E7", "12e03", "1.0e3", "08", "009", "0o755", "374e949253", "0x1F", "1_000",
    # case 2
    "y", "n", "Y", "N", "yes", "No", "on", "OFF", "true", "null", "~",
    # case 3
    "22:22", "12:30", "190:20:30",
    # case 4
    "0755", "0o755",
    # case 5
    "25.10", "1.30", "1.10",
    # case 6
    "2024-01-01", "2024-01-01T10:00:00Z",
    # more of the kind
    "=", "<<", ".inf", "+1", "1.", ".5", "-", "", " x", "x ", "a: b", "# x", "{{ x }}", "${HOME}", "é", "a\tb", "!x", "&a", "*a", "%",
]  # fmt: skip


@pytest.mark.tools
def test_case_01_02_03_05_06_quoted_text_stays_text(helm: Path, tmp_path: Path):
    """Every text that some reader of YAML takes for something else: as a value, as a key, in a list, in a manifest."""
    lines = [f"t{number}: {_quoted(text)}" for number, text in enumerate(QUOTED)]
    keys = [f"  {_quoted(text)}: {number}" for number, text in enumerate(dict.fromkeys(QUOTED))]
    listed = f"list: [{', '.join(_quoted(text) for text in QUOTED)}]"
    data = "".join(f"  t{number}: {{{{ values.t{number} | to_json }}}}\n" for number in range(len(QUOTED)))
    bundle = built(
        tmp_path / "w",
        {
            LEAF: overrides("\n".join([*lines, "keys:", *keys, listed])),
            "components/beta/values.yaml": "greeting: hello\n" + "\n".join(lines) + "\n",
            SETTINGS: appended(data),
        },
    )
    wanted = {f"t{number}": text for number, text in enumerate(QUOTED)}
    seen = as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml")
    assert {key: value for key, value in seen.items() if key in wanted} == wanted
    assert seen["keys"] == {text: number for number, text in enumerate(dict.fromkeys(QUOTED))}
    assert seen["list"] == QUOTED
    (settings,) = [o for o in rendered(helm, bundle / "components/beta") if o["kind"] == "ConfigMap"]
    assert settings["data"] == {"greeting": "hello", **wanted}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


@pytest.mark.parametrize(
    ("case", "plain", "why", "fix"),
    [
        (1, "72225e2", "a number to some YAML readers, text to others", ""),
        (1, "08", "an octal number to some YAML readers, a decimal to others", ""),
        (2, "y", "a boolean to some YAML readers, text to others", ""),
        (3, "22:22", "a base-60 number to YAML 1.1, text to others", ""),
        (4, "0755", "an octal number to some YAML readers, a decimal to others", ", or write the decimal 493"),
        (4, "0o755", "a number to some YAML readers, text to others", ", or write the decimal 493"),
        (6, "2024-01-01", "a date to some YAML readers, text to others", ""),
    ],
)
def test_case_01_02_03_06_the_same_unquoted_is_refused(tmp_path: Path, case: int, plain: str, why: str, fix: str):
    (finding,) = refused(tmp_path, {LEAF: replaced('tag: "1.0"', f"tag: {plain}")})
    assert finding == f'overlays/leaf.yaml:11:22: [BC1003] plain `{plain}` is {why} | quote it: "{plain}"{fix}', case


@pytest.mark.parametrize(
    ("file", "old", "new", "finding"),
    [
        (
            ALPHA,
            'version: "1.2.3"',
            "version: 25.10",
            'components/alpha/component.yaml:7:75: [BC1102] spec.chart.version must be a quoted string, not the number 25.1 | write "25.10" with quotes',
        ),
        (
            "mixins/extra.yaml",
            '">= 1.34"',
            "1.30",
            'mixins/extra.yaml:6:41: [BC1102] spec.constraints[0].value must be a quoted string, not the number 1.3 | write "1.30" with quotes',
        ),
        (
            WORKSPACE,
            "revision: main",
            "revision: 1.10",
            'bundlec.yaml:4:63: [BC1102] spec.git.revision must be a quoted string, not the number 1.1 | write "1.10" with quotes',
        ),
        (
            LEAF,
            "    - name: gamma\n",
            "    - name: gamma\n      version: 4.10\n      reason: newer\n",
            'overlays/leaf.yaml:15:16: [BC1102] spec.componentRefs[2].version must be a quoted string, not the number 4.1 | write "4.10" with quotes',
        ),
        (
            "components/beta/manifests/widget.yaml",
            "  name: one\n",
            "  name: one\n  labels: {version: 1.10}\n",
            "components/beta/manifests/widget.yaml:1:1: [BC3008] not a Kubernetes object: `metadata.labels.version` must be a string, quote it | an object has apiVersion, kind and metadata.name; values that are not objects belong in another file",
        ),
    ],
    ids=["chart", "constraint", "revision", "ref", "label"],
)
def test_case_05_a_version_is_never_a_float(tmp_path: Path, file: str, old: str, new: str, finding: str):
    assert refused(tmp_path, {file: replaced(old, new)}) == [finding]


@pytest.mark.tools
def test_case_08_one_list_at_many_places(helm: Path, tmp_path: Path):
    """A template that writes one value at two places: plain lists, no anchor, and each its own."""
    bundle = built(
        tmp_path / "w",
        {
            "components/beta/values.yaml": "greeting: hello\ntolerations: [{key: gpu, operator: Exists}]\n",
            SETTINGS: """\
apiVersion: example.org/v1
kind: Widget
metadata: {name: two}
spec:
  daemonsets: {tolerations: {{ values.tolerations | to_json }}}
  operator: {tolerations: {{ values.tolerations | to_json }}}
""",
        },
    )
    for path in bundle.rglob("*.yaml"):
        assert "&id" not in path.read_text(), path
    (two,) = [o for o in rendered(helm, bundle / "components/beta") if o["metadata"]["name"] == "two"]
    assert (
        two["spec"]["daemonsets"] == two["spec"]["operator"] == {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    )


@pytest.mark.tools
@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ('"570.10"', "570.10"),
        ('"0755"', "0755"),
        ('"yes"', "yes"),
        ('"1e3"', "1e3"),
        ("12345678", 12345678),
        ("true", True),
        ("1.5", 1.5),
    ],
)
def test_case_09_a_value_of_the_bundle_keeps_its_type(helm: Path, tmp_path: Path, written: str, seen: Any):
    """Here in the form of a bundle's `set`; the rules of `--set` are tested with its parser."""
    text = f"      set: {{alpha: {{driver: {{version: {written}}}}}}}\n"
    bundle = built(tmp_path / "w", {WORKSPACE: appended(text)})
    value = as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml")["driver"]["version"]
    assert (value, type(value)) == (seen, type(seen))


@pytest.mark.parametrize(
    ("value", "place", "was"),
    [
        ("image: none", "bundlec.yaml:8:28", "`alpha:image` is a map (overlay leaf)"),
        ("list: none", "bundlec.yaml:8:27", "`alpha:list` is a list (alpha values.yaml)"),
    ],
)
def test_case_09_15_a_scalar_does_not_replace_a_map_or_a_list(tmp_path: Path, value: str, place: str, was: str):
    changes = {VALUES: appended("list: [a]\n"), WORKSPACE: appended(f"      set: {{alpha: {{{value}}}}}\n")}
    (finding,) = refused(tmp_path, changes)
    assert finding.startswith(f"{place}: [BC2005] {was} and becomes a scalar (bundle demo) | write a ")


# ---------------------------------------------------------------------------------------------------------------------
# Nulls, and what is falsy

DEFAULTS = "storage: {emptyDir: {medium: Memory, sizeLimit: 1Gi}, pvc: {}}\nextra: {a: 1, b: 2}\n"


@pytest.mark.tools
def test_case_11_a_null_over_our_own_value_is_no_null_for_helm(helm: Path, tmp_path: Path):
    """The component's values set emptyDir, the chart has no such default: the key is gone."""
    bundle = built(tmp_path / "w", {LEAF: overrides("storage: {emptyDir: null, pvc: {}}")})
    (values,) = documents(bundle / "components/alpha/values.yaml")
    assert values["storage"] == {"pvc": {}}
    assert as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml")["storage"] == {"pvc": {}}


@pytest.mark.tools
def test_case_11_a_null_over_a_default_of_the_chart_deletes_it(helm: Path, tmp_path: Path):
    bundle = built(
        tmp_path / "w",
        {
            ALPHA: appended("  chartDefaults: [storage.emptyDir.medium, storage.emptyDir.sizeLimit]\n"),
            LEAF: overrides("storage: {emptyDir: null, pvc: {}}"),
        },
    )
    (values,) = documents(bundle / "components/alpha/values.yaml")
    assert values["storage"] == {"emptyDir": None, "pvc": {}}
    seen = as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml", DEFAULTS)
    assert seen["storage"] == {"pvc": {}}
    assert seen["extra"] == {"a": 1, "b": 2}


@pytest.mark.tools
def test_case_11_a_map_after_a_null_starts_from_nothing(helm: Path, tmp_path: Path):
    """Null in the overlay, a map in the bundle: neither the component's nor the chart's default comes back."""
    bundle = built(
        tmp_path / "w",
        {
            ALPHA: appended("  chartDefaults: [storage.emptyDir.medium, storage.emptyDir.sizeLimit]\n"),
            LEAF: overrides("storage: {emptyDir: null}"),
            WORKSPACE: appended("      set: {alpha: {storage: {emptyDir: {sizeLimit: 2Gi}}}}\n"),
        },
    )
    seen = as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml", DEFAULTS)
    assert seen["storage"]["emptyDir"] == {"sizeLimit": "2Gi"}


def test_case_11_a_null_that_deletes_nothing_is_refused(tmp_path: Path):
    (finding,) = refused(tmp_path, {LEAF: overrides("storge: null")})
    assert finding.startswith("overlays/leaf.yaml:11:9: [BC2009] `storge: null` (overlay leaf) deletes nothing")
    assert finding.endswith(" | did you mean `storage`?")


def test_case_12_a_key_with_comments_below_is_pointed_out(tmp_path: Path):
    root = write_catalog(tmp_path, {LEAF: overrides("storage:\n  # emptyDir: {}")})
    (warning,) = told(bundlec("list", cwd=root).err)
    assert warning == (
        "overlays/leaf.yaml:11:17: warning: [BC1208] `storage` has no value but comments below it: it is null and deletes "
        "what it inherits | remove the key to inherit, write `{}` for an empty map, or `null` if it shall be deleted"
    )


@pytest.mark.tools
@pytest.mark.parametrize(
    ("base", "leaf", "seen"),
    [
        ("true", "false", False),
        ("2", "0", 0),
        ("text", '""', ""),
        ("[a, b]", "[]", []),
        ("1", "true", True),
        ("{a: 1}", "{}", {"a": 1}),
    ],
)
def test_case_13_falsy_values_override(helm: Path, tmp_path: Path, base: str, leaf: str, seen: Any):
    """And an empty map overrides nothing, since maps merge."""
    bundle = built(tmp_path / "w", {VALUES: appended(f"x: {base}\n"), LEAF: overrides(f"x: {leaf}")})
    value = as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml")["x"]
    assert (value, type(value)) == (seen, type(seen))


def test_case_13_one_and_true_are_not_the_same(tmp_path: Path):
    """A change from 1 to true is a change, although Python holds them equal."""
    one = built(tmp_path / "w", {LEAF: overrides("x: 1")})
    before = (one / "components/alpha/values.yaml").read_bytes()
    true = built(tmp_path / "w", {LEAF: overrides("x: true")})
    assert (before, (true / "components/alpha/values.yaml").read_bytes().splitlines()[-1]) == (before, b"x: true")
    assert before.splitlines()[-1] == b"x: 1"


@pytest.mark.tools
def test_case_16_lists_replace(helm: Path, tmp_path: Path):
    bundle = built(tmp_path / "w", {VALUES: appended("x: [a, b]\n"), LEAF: overrides("x: [c]")})
    assert as_helm_reads(helm, tmp_path, bundle / "components/alpha/values.yaml")["x"] == ["c"]
