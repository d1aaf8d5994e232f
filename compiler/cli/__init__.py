"""The command line. Flags in, exit status out; the work is done by the stages that `pipeline` chains.

Exit status: 0 ok, 1 the input is wrong, 2 usage, 3 a bug of ours, 4 drift found, 130 interrupted. Results go to
standard output, text for people to standard error.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path

import click

from compiler.cli.build import build
from compiler.cli.diff import diff
from compiler.cli.explain import explain
from compiler.cli.lint import lint
from compiler.cli.new import new
from compiler.cli.output import prepare, say
from compiler.cli.schema import schema
from compiler.cli.session import FolderName, Session
from compiler.cli.show import graph, list_, resolve
from compiler.cli.verify import verify
from compiler.errors import BundlecError, DriftError, UserError

_BUG = "This is a bug of bundlec, not of your input."


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="bundlec", prog_name="bundlec")
@click.option(
    "-C",
    "--workspace",
    type=FolderName(),
    help="Folder that holds bundlec.yaml; default: here or above.",
)
@click.pass_obj
def cli(session: Session, workspace: Path | None) -> None:
    """Compile recipes into GitOps bundles for GPU Kubernetes clusters.

    A recipe is a composition of overlays, mixins and components; a bundle is what it renders to: plain files for
    deploy.sh, helmfile, Argo CD and Flux.
    """
    session.workspace = workspace


for _command in (build, list_, resolve, graph, verify, diff, explain, lint, schema, new):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (of the process, or `arguments`) and return its exit status.

    No error leaves a traceback; BUNDLEC_DEBUG=1 shows those of bugs.
    """
    prepare()
    session = Session()
    # A run makes much that lives to its end and next to no cycles: looking for them takes a tenth of its time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        status = cli.main(arguments, prog_name="bundlec", standalone_mode=False, obj=session)
    except UserError as error:
        session.report(error.diagnostics)
        return error.exit_code
    except DriftError as error:
        say(str(error), err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted", err=True)
        return 130
    except Exception as error:
        if os.environ.get("BUNDLEC_DEBUG"):
            raise
        what = str(error) if isinstance(error, BundlecError) else f"{type(error).__name__}: {error}"
        say(f"bundlec: internal error: {what}\n{_BUG} BUNDLEC_DEBUG=1 shows where it happened.", err=True)
        return 3
    finally:
        if arguments is None:
            # The process ends here, and its end looks for cycles in all that is left: another tenth of the time.
            gc.freeze()
        elif collecting:
            gc.enable()
    return status if isinstance(status, int) else 0
