"""Manifests from their source to the objects that each deployer applies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.support import BETA, LEAF, built, documents, refused, rendered
from tests.support.scratch import appended, replaced

WIDGET = "components/beta/manifests/widget.yaml"
SETTINGS = "components/beta/manifests/settings.yaml.j2"

SEPARATORS = """\
---
# a licence
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: script
data:
  s: |
    first
    ---
    second
  quoted: "a\\n---\\nb"
--- # two
apiVersion: v1
kind: ConfigMap
metadata:
  name: second
data: {a: "---"}
---
# only a comment
...
"""


@pytest.mark.tools
@pytest.mark.parametrize("file", [WIDGET, SETTINGS], ids=["static", "template"])
def test_case_19_separators_inside_and_around_documents(helm: Path, tmp_path: Path, file: str):
    kept = {WIDGET: "settings", SETTINGS: "one"}[file]
    bundle = built(tmp_path, {file: SEPARATORS})
    objects = {o["metadata"]["name"]: o for o in rendered(helm, bundle / "components/beta")}
    assert objects.keys() == {"script", "second", kept}
    assert objects["script"]["data"] == {"s": "first\n---\nsecond\n", "quoted": "a\n---\nb"}
    assert objects["second"]["data"] == {"a": "---"}
    for path in (bundle / "components/beta/manifests").iterdir():
        assert len(documents(path)) == 1
        assert "\n...\n" not in path.read_text()


@pytest.mark.tools
def test_case_20_braces_reach_the_cluster(helm: Path, tmp_path: Path):
    """Of Prometheus, of Grafana, of Go templates; also in comments, which Helm would evaluate as well."""
    text = {
        "summary": 'GPU {{ $labels.gpu }} on {{ printf "%s" .x }}',
        "legend": "{{gpu_id}}",
        "unbalanced": "}} {{",
        "unknown": "{{ nosuchfunction . }}",
        "raw": "{% raw %} {# no comment of ours #}",
    }
    data = "".join(f"  {key}: {value!r}\n" for key, value in text.items())
    bundle = built(
        tmp_path,
        {
            WIDGET: appended(
                f"---\n# {{{{ nosuchfunction }}}} {{{{\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: rules}}\ndata:\n{data}"
            )
        },
    )
    (rules,) = [o for o in rendered(helm, bundle / "components/beta") if o["metadata"]["name"] == "rules"]
    assert rules["data"] == text


def test_case_21_nothing_is_substituted_by_flux(tmp_path: Path):
    """A shell script with ${VARIABLES}: no `postBuild`, and the switch that keeps Flux from it on what holds a `${`."""
    script = (
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: script}\ndata: {run: 'echo ${DRIVER_VERSION} $${X}'}\n"
    )
    bundle = built(tmp_path, {WIDGET: appended(script), LEAF: replaced('tag: "1.0"', "tag: '${TAG}'")})
    (script_object,) = documents(bundle / "components/beta/manifests/configmap-script.yaml")
    assert script_object["data"]["run"] == "echo ${DRIVER_VERSION} $${X}"
    for path in sorted((bundle / "flux").rglob("*.yaml")):
        for document in documents(path):
            assert "postBuild" not in document.get("spec", {}), path
            if "${" in str(document):
                metadata = document["metadata"]
                switches = {**metadata.get("labels", {}), **metadata.get("annotations", {})}
                assert switches["kustomize.toolkit.fluxcd.io/substitute"] == "disabled", path


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (
            "  size: {{ values.size }}\n",
            "components/beta/manifests/widget.yaml:6:10: [BC1003] a mapping key that is not a string | a template is named *.yaml.j2",
        ),
        (
            "  {% if values.size %}\n",
            "components/beta/manifests/widget.yaml:6:4: [BC1001] found character that cannot start any token (while scanning for the next token) | a template is named *.yaml.j2",
        ),
        (
            "  {{- if .Values.size }}\n",
            "components/beta/manifests/widget.yaml:6:4: [BC1003] a mapping key that is not a string | a template is named *.yaml.j2",
        ),
    ],
    ids=["value", "jinja", "helm"],
)  # fmt: skip
def test_case_24_a_template_that_is_not_named_as_one(tmp_path: Path, line: str, finding: str):
    found = refused(tmp_path, {WIDGET: replaced("  size: 3\n", line)})
    assert finding in found, found


def test_case_25_one_object_in_two_components(tmp_path: Path):
    """Also when one leaves the namespace to the default and the other is of another version of the API."""
    other = "---\napiVersion: example.org/v2\nkind: Widget\nmetadata: {name: one, namespace: beta-system}\n"
    (finding,) = refused(
        tmp_path,
        {
            "components/delta/component.yaml": (
                "apiVersion: bundlec.dev/v1alpha1\nkind: Component\nmetadata: {name: delta}\nspec:\n"
                "  namespace: {name: delta}\n  manifests: {main: [manifests/other.yaml]}\n"
            ),
            "components/delta/manifests/other.yaml": other,
            LEAF: replaced("    - name: beta\n", "    - name: delta\n    - name: beta\n"),
        },
    )
    assert finding.startswith(
        "components/delta/manifests/other.yaml:2:1: [BC3009] Widget beta-system/one is rendered twice"
    )


def test_a_null_in_a_rendered_template(tmp_path: Path):
    found = refused(tmp_path, {SETTINGS: replaced("{{ values.greeting | to_json }}", "")})
    assert [line.partition(" | ")[0] for line in found] == [
        "components/beta/manifests/settings.yaml.j2:6:12: [BC3013] null at `data.greeting`"
    ]


def test_a_manifest_is_rendered_when_it_is_listed_and_not_else(tmp_path: Path):
    files = {"components/beta/manifests/stray.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray}\n"}
    assert not (built(tmp_path / "a", files) / "components/beta/manifests/configmap-stray.yaml").exists()
    listed = {**files, BETA: replaced("manifests/widget.yaml,", "manifests/widget.yaml, manifests/stray.yaml,")}
    assert (built(tmp_path / "b", listed) / "components/beta/manifests/configmap-stray.yaml").exists()
