"""Programs through the one door: arguments stay arguments, failures carry everything, deadlines hold."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from compiler.tools import ToolError, run


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_output_and_input_pass_through():
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('note')"
    result = run(python(code), stdin="größe\n")
    assert (result.returncode, result.text, result.stderr) == (0, "GRÖSSE\n", b"note")


def test_no_shell_sees_the_arguments(tmp_path: Path):
    word = f"$(touch {tmp_path}/made); `touch {tmp_path}/made` > {tmp_path}/made *"
    result = run(python("import sys; print(sys.argv[1], end='')", word))
    assert result.text == word
    assert not (tmp_path / "made").exists()


def test_standard_input_is_never_the_callers():
    assert run(python("import sys; print(len(sys.stdin.read()))")).text == "0\n"


def test_a_failure_carries_command_status_and_both_streams():
    code = "import sys; print('half of it'); print('disk on fire', file=sys.stderr); sys.exit(7)"
    with pytest.raises(ToolError) as caught:
        run(python(code, "two words"))
    assert caught.value.result is not None
    assert caught.value.result.returncode == 7
    message = str(caught.value)
    for part in ("exit status 7 of: ", "'two words'", "stdout: half of it", "stderr: disk on fire"):
        assert part in message


def test_check_off_returns_the_failure():
    assert run(python("import sys; sys.exit(3)"), check=False).returncode == 3


def test_a_long_stream_is_cut_in_the_message_only():
    with pytest.raises(ToolError) as caught:
        run(python("import sys; print('x' * 10_000 + 'END'); sys.exit(1)"))
    assert caught.value.result is not None
    assert len(caught.value.result.stdout) == 10_004
    assert "END" in str(caught.value)
    assert len(str(caught.value)) < 3_000


def test_a_missing_program_is_named():
    with pytest.raises(
        ToolError, match=r"^no program `no-such-program-here`, needed for: no-such-program-here --do it$"
    ):
        run(["no-such-program-here", "--do", "it"])


def test_a_missing_folder_is_not_reported_as_a_missing_program(tmp_path: Path):
    with pytest.raises(ToolError, match=r"^no folder .*/nowhere, needed for: "):
        run([sys.executable, "-V"], cwd=tmp_path / "nowhere")


def test_a_file_that_is_no_program(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ToolError, match=r"^cannot run .*notes\.txt: Permission denied$"):
        run([tmp_path / "notes.txt"])


def test_environment_is_replaced_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FROM_US", "1")
    code = "import os; print(os.environ.get('FROM_US'), os.environ.get('GIVEN'))"
    assert run(python(code)).text == "1 None\n"
    assert run(python(code), env={"GIVEN": "2"}).text == "None 2\n"


def test_a_deadline_ends_grandchildren_that_hold_the_pipes(tmp_path: Path):
    # The child leaves a grandchild behind that inherits its pipes: ending the child alone would block on them.
    pid_file = tmp_path / "pid"
    grandchild = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}]); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"^no end after 1\.5 s: exit status -9 of: "):
        run(python(code), timeout=1.5)
    assert time.monotonic() - started < 20
    assert not alive(int(pid_file.read_text()))


def test_killed_by_a_signal():
    with pytest.raises(ToolError, match=r"^exit status -15 of: "):
        run(python(f"import os, signal; os.kill(os.getpid(), {int(signal.SIGTERM)})"))


def alive(pid: int) -> bool:
    # A killed grandchild may wait as a zombie for whoever reaps orphans here.
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.02)
    return True
