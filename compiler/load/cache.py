"""The cache of parsed source files: saves parsing and schema validation, and is never needed for a correct result.

One file of JSON holds all documents, since one large read is faster than many small ones. An entry is used when the
digest of the file's bytes is the same; the whole cache is dropped when it is damaged, or when this format, the readers
or a schema changed. A cache that cannot be read or written is ignored.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.source import Document

_FORMAT = 1
_MARK = "I"


def digest(data: bytes) -> str:
    """The digest that names a content in the cache."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Cache:
    """Parsed documents by file, in `folder`. `salt` names everything else that an entry depends on (schemas, code)."""

    def __init__(self, folder: Path, salt: str) -> None:
        self._file = folder / "sources.json"
        self._head = [_FORMAT, sys.byteorder, array(_MARK).itemsize, salt]
        self._old = self._read()
        self._new: dict[str, Any] = {}
        self._changed = False

    def get(self, file: str, key: str, text: str) -> tuple[Document, ...] | None:
        """The documents of `file` if they were stored under this digest of its content."""
        entry = self._old.get(file)
        if entry is None or entry[0] != key:
            return None
        self._new[file] = entry
        return tuple(Document(file, data, array(_MARK, base64.b64decode(marks)), text) for data, marks in entry[1])

    def put(self, file: str, key: str, documents: tuple[Document, ...]) -> None:
        """Keep the documents of a file that has no findings."""
        self._changed = True
        self._new[file] = [
            key,
            [[d.data, base64.b64encode(array(_MARK, d.marks).tobytes()).decode()] for d in documents],
        ]

    def save(self) -> None:
        """Write the cache when something was added or went away; atomically, and without a word when it cannot be."""
        if not self._changed and self._new.keys() == self._old.keys():
            return
        folder = self._file.parent
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            ignore = folder.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            handle, name = tempfile.mkstemp(dir=folder, prefix=".sources-")
            try:
                body = json.dumps(self._new, ensure_ascii=False, separators=(",", ":")).encode()
                with os.fdopen(handle, "wb") as stream:
                    stream.write(json.dumps([*self._head, digest(body)]).encode() + b"\n" + body)
                Path(name).replace(self._file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def _read(self) -> Mapping[str, Any]:
        # The head is written from the same values, so bytes compare; the digest vouches for the form of the body.
        try:
            head, _, body = self._file.read_bytes().partition(b"\n")
        except OSError:
            return {}
        if head != json.dumps([*self._head, digest(body)]).encode():
            return {}
        files: Mapping[str, Any] = json.loads(body)
        return files
