"""A Git repository for deployers that pull: what `git http-backend` answers, and commits of a bundle.

It is served under the address that the bundle itself names: the proxy of `upstream.py` takes its host over.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body of an answer over HTTP."""


class Repository:
    """A repository whose address is `url`, in `folder`; read-only for those who come over HTTP."""

    def __init__(self, folder: Path, url: str, branch: str = "main") -> None:
        where = urlsplit(url)
        assert where.hostname
        self.url, self.host = url, where.hostname
        self._root = folder / "served"
        self._tree = folder / "tree"
        self._tree.mkdir(parents=True)
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(self._root / where.path.strip("/")),
            "GIT_WORK_TREE": str(self._tree),
            **{f"GIT_{who}_{what}": "e2e@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        Path(self._env["GIT_DIR"]).parent.mkdir(parents=True)
        self._git("init", "--quiet", f"--initial-branch={branch}")

    def publish(self, folder: Path, path: str, message: str = "A bundle") -> str:
        """Commits what is in `folder` as `path`, in place of what was there; the commit."""
        target = self._tree / path
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(folder, target)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def head(self) -> str:
        """The newest commit."""
        return self._git("rev-parse", "HEAD").decode().strip()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """What a request gets; `target` is the path and the query of its address."""
        where = urlsplit(target)
        env = {
            **{key: value for key, value in self._env.items() if key not in ("GIT_DIR", "GIT_WORK_TREE")},
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": method,
            "PATH_INFO": where.path,
            "QUERY_STRING": where.query,
            "CONTENT_TYPE": headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        found = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(found.pop("Status", "200").split()[0]) if head else 500
        return status, found, content

    def _git(self, *arguments: str) -> bytes:
        done = subprocess.run(
            ["git", *arguments],
            env=self._env,
            cwd=self._tree,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, f"git {arguments[0]}: {done.stderr.decode()[-500:]}"
        return done.stdout
