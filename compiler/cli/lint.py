"""`lint`: what is amiss in the sources, also where they compile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from compiler.cli.output import as_json, diagnostic_json, say, style
from compiler.cli.session import Session, find_root, format_option
from compiler.errors import UserError

if TYPE_CHECKING:
    from compiler.review.lint import Result


@click.command()
@format_option("text", "github", "sarif", "json")
@click.pass_obj
def lint(session: Session) -> int:
    """Compile every recipe on every deployer, and look for what is unused, restated, weakened, floating or unchecked.

    Exit 1 when there is an error or a warning that `lint.waivers` of bundlec.yaml does not accept.
    """
    from compiler import pipeline
    from compiler.review.lint import Result
    from compiler.review.lint import lint as run

    session.root = find_root(session.workspace)
    try:
        catalog = pipeline.read_catalog(session.root)
    except UserError as error:
        result = Result(error.diagnostics, (), 0)
    else:
        result = run(catalog, session.root, time.strftime("%Y-%m-%d", time.gmtime()))
    _show(session, result)
    return 0 if result.clean else 1


def _show(session: Session, result: Result) -> None:
    from compiler import report
    from compiler.review.lint import forms

    if session.form == "github":
        say(forms.github(result.findings), nl=bool(result.findings))
    elif session.form == "sarif":
        from importlib.metadata import version

        say(as_json(forms.sarif(result.findings, result.waived, version("bundlec"))))
    elif session.form == "json":
        waived = [
            {**found, "reason": reason}
            for found, (_, reason) in zip(
                diagnostic_json([item for item, _ in result.waived]), result.waived, strict=True
            )
        ]
        say(as_json({"findings": diagnostic_json(result.findings), "waived": waived, "compiled": result.compiled}))
    elif result.findings:
        say(report.diagnostics(result.findings, session.root or find_root(None), style(err=False)) + "\n")
    counted = [_count(result.count(severity), severity) for severity in ("error", "warning", "note")]
    say(f"{', '.join(counted)}; {len(result.waived)} waived; {_count(result.compiled, 'compilation')}", err=True)


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
