"""The one door to other programs. No shell, no inherited standard input, no call without a deadline."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compiler.errors import BundlecError
from compiler.records import dataclass

DEADLINE = 60.0
"""Seconds a program may run when the caller does not say."""

_SHOWN = 2000  # characters of each stream that an error message carries; the exception holds all of it


@dataclass(frozen=True)
class Result:
    """How a program ended. `returncode` is negative when a signal ended it (`-9`: SIGKILL)."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")


class ToolError(BundlecError):
    """A program is missing, failed or ran out of time. `result` is None when it never started."""

    exit_code = 1

    def __init__(self, message: str, argv: tuple[str, ...], result: Result | None = None) -> None:
        self.argv = argv
        self.result = result
        super().__init__(message)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    stdin: bytes | str = b"",
    env: Mapping[str, str] | None = None,
    timeout: float = DEADLINE,
    check: bool = True,
) -> Result:
    """Run `command` (program and arguments) and return how it ended.

    `env` replaces the environment; None passes ours on. With `check`, an exit status other than 0 raises. The program
    gets a process group of its own, so that a deadline or an interrupt ends its children as well: a child that kept the
    pipes open would otherwise be waited for.

    Raises `ToolError` with the command, the exit status and both streams; also when the program or `cwd` is missing,
    cannot be executed, or runs longer than `timeout` seconds.
    """
    argv = tuple(str(word) for word in command)
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if data else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        missing = (
            f"no folder {cwd}" if cwd is not None and str(error.filename) == str(cwd) else f"no program `{argv[0]}`"
        )
        raise ToolError(f"{missing}, needed for: {_shown(argv)}", argv) from error
    except OSError as error:
        raise ToolError(f"cannot run {_shown(argv)}: {error.strerror}", argv) from error
    with process:
        try:
            stdout, stderr = process.communicate(data or None, timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            result = Result(argv, -signal.SIGKILL, *process.communicate())
            raise ToolError(f"no end after {timeout:g} s: {_report(result)}", argv, result) from None
        except BaseException:
            _end(process)
            raise
    result = Result(argv, process.returncode, stdout, stderr)
    if check and result.returncode != 0:
        raise ToolError(_report(result), argv, result)
    return result


def _end(process: subprocess.Popen[bytes]) -> None:
    # The group has the number of its first process, which has not been waited for: it cannot be somebody else's yet.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _shown(argv: Sequence[str]) -> str:
    # Lazy: half of all runs of the compiler start no program, and none of them needs `shlex` before one fails.
    import shlex

    return shlex.join(argv)


def _report(result: Result) -> str:
    lines = [f"exit status {result.returncode} of: {_shown(result.argv)}"]
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        text = stream.decode("utf-8", "replace").strip()
        if len(text) > _SHOWN:
            text = f"[{len(text) - _SHOWN} characters before this]\n{text[-_SHOWN:]}"
        lines += [f"  {name}: {line}" for line in text.splitlines()]
    return "\n".join(lines)
