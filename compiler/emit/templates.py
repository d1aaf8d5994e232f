"""The templates of scripts and of the README: their folder, and their bytecode, kept as Python keeps its own."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


def environment(**options: Any) -> Environment:
    """A Jinja environment over `templates/` in which an unknown name is an error; `options` are Jinja's own.

    Compiling a template costs more than rendering it, so its bytecode lies beside it in `__pycache__`, under the rules
    of Python's own: PYTHONPYCACHEPREFIX moves it, PYTHONDONTWRITEBYTECODE and a folder that cannot be written leave it
    out. Jinja checks an entry against the template's text; the name of the file covers Jinja's version and the options.
    """
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, __version__

    class Bytecode(FileSystemBytecodeCache):
        def load_bytecode(self, bucket: Any) -> None:
            try:
                super().load_bytecode(bucket)
            except (OSError, EOFError, ValueError, UnpicklingError):  # unreadable or damaged: it is made anew
                bucket.reset()

        def dump_bytecode(self, bucket: Any) -> None:
            if not sys.dont_write_bytecode:
                with contextlib.suppress(OSError):
                    folder.mkdir(exist_ok=True)
                    super().dump_bytecode(bucket)

    syntax = sorted((name, value) for name, value in options.items() if isinstance(value, (str, bool)))
    salt = hashlib.blake2b(repr((__version__, syntax)).encode(), digest_size=6).hexdigest()
    folder = Path(cache_from_source(str(_TEMPLATES / "template.py"))).parent
    return Environment(  # noqa: S701 - shell and Markdown, not HTML: what quotes and escapes is in `options`
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=Bytecode(str(folder), f"jinja-{salt}-%s.pyc"),
        **options,
    )
