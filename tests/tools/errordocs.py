"""docs/errors.md: every diagnostic code with an example, as the compiler prints it, and its fix. `make docs`.

    python tests/tools/errordocs.py            writes the file
    python tests/tools/errordocs.py --check    exit 1 when it is not what would be written

Each example is compiled when this runs: what the page shows is what people see.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from compiler.codes import CODES  # noqa: E402
from tests.cli.test_broken_catalogs import MORE, TEN, apply  # noqa: E402
from tests.support.scratch import bundlec, write_catalog  # noqa: E402
from tests.tools.error_examples import BUILD, EXAMPLES, Example  # noqa: E402

FILE = ROOT / "docs" / "errors.md"
GROUPS: Mapping[str, str] = {
    "BC10": "YAML",
    "BC11": "Schema",
    "BC12": "Catalog",
    "BC2": "Composing a recipe",
    "BC3": "Planning",
    "BC4": "Deployers and settings",
    "BC5": "Writing",
    "BC6": "Verifying and comparing",
    "BC7": "Lint",
}
HEAD = """\
# Diagnostics

Every finding has a place, a code, and what to do about it. Codes are stable: they are never renumbered and never reused.
`make docs` writes this page from the compiler itself; each example is what the command prints.
"""


def page() -> str:
    """The whole page. Raises LookupError for a code whose example does not show it."""
    lines = [HEAD]
    with tempfile.TemporaryDirectory(prefix="bundlec-docs-") as name:
        built = write_catalog(Path(name).resolve() / "built")
        ran = bundlec("build", "--all", cwd=built)
        if ran.status != 0:
            raise LookupError(ran.err)
        for prefix, title in GROUPS.items():
            lines.append(f"## {title}\n")
            for code in (code for code in CODES if code.startswith(prefix)):
                lines += [f"### {code}\n", f"{CODES[code][0].upper()}{CODES[code][1:]}.\n", *_example(code, built)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _example(code: str, built: Path) -> Iterator[str]:
    for change, command in _candidates(code):
        root = shutil.copytree(built, built.parent / "catalog", symlinks=True)
        try:
            apply(root, change)
            ran = bundlec(*command, cwd=root)
            shown = next((b for b in (ran.out + "\n\n" + ran.err).split("\n\n") if f"[{code}]" in b), None)
        finally:
            shutil.rmtree(root)
        if shown is not None:
            told = shown.strip("\n").replace(str(root), "/home/me/bundles")
            yield f"```console\n$ {shlex.join(['bundlec', *command])}\n{told}\n```\n"
            return
    raise LookupError(f"no example shows {code}; add one to tests/tools/error_examples.py")


def _candidates(code: str) -> Iterator[Example]:
    if code in EXAMPLES:
        yield EXAMPLES[code]
        return
    for change, findings in {**TEN, **MORE}.values():
        if any(f"[{code}]" in finding for finding in findings):
            yield change, BUILD


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/errors.md is not what the compiler says; `make docs` writes it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
