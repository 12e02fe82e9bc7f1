"""Builds wheels for each supported CPython that is found, repairs their tags, and tries each without a compiler.

    python tools/wheels.py [--out dist] [--python PATH ...]

Environment variables are cibuildwheel's: CIBW_BUILD (patterns such as "cp311-* cp312-*"), CIBW_SKIP. Wheels are for
glibc 2.28 and later (RHEL 8, Debian 10, Ubuntu 20.04), as NumPy's are: an image of manylinux has such a glibc;
elsewhere Zig's compiler, a package of PyPI, builds against one, with a C++ library of its own inside. `auditwheel`
checks it. A wheel holds code for any x86-64; what AVX2 and AVX-512 do better is chosen when it runs.

A wheel is tried in a new environment with nothing on PATH but Python: installed, imported, one fit, LAPACK without
SciPy, and `export.to_c`, which needs a compiler to link and has to say so. The sizes of the wheel, and of all that is
installed with it, are printed, and must not grow.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
LARGEST = 20e6  # bytes of our own part of what is installed; LLVM and NumPy are the rest
LARGEST_OF_ALL = 260e6  # jaxlib alone takes 349
GLIBC = "2.28"
PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"

TRY = """
import os, sys, pathlib
import pullback as jax, pullback.numpy as jnp
from pullback import export

def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

x = jax.random.normal(jax.random.key(0), (100, 3))
y, w = jnp.tanh(x @ jnp.array([1.0, -2.0, 0.5])), jnp.zeros(3)
step = jax.jit(lambda w: w - 0.5 * jax.grad(loss)(w, x, y))
for _ in range(500):
    w = step(w)
assert float(loss(w, x, y)) < 1e-3, float(loss(w, x, y))
a = jax.random.normal(jax.random.key(1), (90, 90))
values, vectors = jax.jit(jnp.linalg.eigh)(a + a.T)
assert float(abs(vectors * values @ vectors.T - a - a.T).max()) < 1e-3
assert abs(float(jax.scipy.special.gammaln(10.0)) - 12.801827) < 1e-4 and "scipy" not in sys.modules
from pullback.runtime.programs import ahead
for level in ahead.BUILT:  # kernels of these very sources, compiled by `make wheels`
    for kind in ahead.SOURCES:
        assert ahead._places(os.path.join(ahead.FOLDER, ahead.file_name(kind, level)), kind), (kind, level)
import tempfile; folder = tempfile.mkdtemp()
try:
    export.to_c(lambda x: jnp.sin(x) * 2, jax.ShapeDtypeStruct((4,), "float32"), path=folder + "/model")
    told = sorted(p.name for p in pathlib.Path(folder, "model").iterdir())
except RuntimeError as error:  # a library is linked by a compiler; without one the message says so
    told = str(error)
    assert "found no C compiler" in told, told
print("fit", w, "C export:", told)
"""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", action="append", help="an interpreter (else those of PATH, pyenv and manylinux)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = interpreters(options.python or [])
    if not found:
        print(f"wheels: no interpreter of {', '.join(VERSIONS)} was found", file=sys.stderr)
        return 1
    for tag, python in found.items():
        print(f"== {tag}: {python}", flush=True)
        wheel = build(python, options.out)
        try_wheel(python, wheel)
    return 0


def interpreters(named: list[str]) -> dict[str, str]:
    """Paths by tag ('cp311'), as CIBW_BUILD and CIBW_SKIP let them."""
    candidates = [*named]
    for version in VERSIONS if not named else ():
        short = version.replace(".", "")
        candidates += [f"/opt/python/cp{short}-cp{short}/bin/python", shutil.which(f"python{version}") or ""]
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        candidates += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
    found: dict[str, str] = {}
    wanted, skipped = os.environ.get("CIBW_BUILD", "*").split(), os.environ.get("CIBW_SKIP", "").split()
    for path in candidates:
        if not path or not shutil.which(path):
            continue
        asked = [path, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"]
        ran = subprocess.run(asked, capture_output=True, text=True)
        tag = ran.stdout.strip()
        named_so = lambda patterns, name=f"{tag}-manylinux_x86_64": any(fnmatch.fnmatch(name, p) for p in patterns)
        if ran.returncode == 0 and named_so(wanted) and not named_so(skipped):
            if tag in {f"cp{v.replace('.', '')}" for v in VERSIONS}:
                found.setdefault(tag, path)
    return found


def build(python: str, out: Path) -> Path:
    """A wheel for systems with GLIBC or a later one."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        environment = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
        if "AUDITWHEEL_PLAT" not in os.environ:  # which images of manylinux set
            environment |= zig(Path(folder))
        command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", folder, str(ROOT)], check=True, env=environment)
        (plain,) = Path(folder).glob("*.whl")
        seconds = time.perf_counter() - started
        repair = [sys.executable, "-m", "auditwheel", "repair", "--strip", "--plat", PLATFORM]
        subprocess.run([*repair, "-w", folder + "/out", str(plain)], check=True)
        (repaired,) = (Path(folder) / "out").glob("*.whl")
        wheel = out / repaired.name
        shutil.copy(repaired, wheel)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, built in {seconds:.0f} s", flush=True)
    return wheel


def zig(folder: Path) -> dict[str, str]:
    """CC and CXX as Zig's compilers for GLIBC, by scripts in a folder."""
    import ziglang

    compiler, found = Path(ziglang.__file__).parent / "zig", {}
    for name, command in (("CC", "cc"), ("CXX", "c++")):
        script = folder / f"zig-{command}"
        flags = f"-target x86_64-linux-gnu.{GLIBC} -fno-sanitize=undefined -g0"  # Zig would have both
        script.write_text(f'#!/bin/sh\nexec "{compiler}" {command} {flags} "$@"\n')
        script.chmod(0o755)
        found[name] = str(script)
    return found


def try_wheel(python: str, wheel: Path) -> None:
    """Install it in a new environment and use it without a compiler; AssertionError if it is too large."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder + "/venv"], check=True)
        own = folder + "/venv/bin/python"
        subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
                        str(wheel)], check=True)  # fmt: skip
        bare = {"PATH": folder + "/venv/bin", "HOME": folder, "CC": "", "CXX": ""}
        packages = next(Path(folder, "venv", "lib").glob("python*/site-packages"))
        tools = ("pip", "setuptools", "pip-", "setuptools-", "_distutils_hack", "pkg_resources")
        subprocess.run([own, "-c", TRY], check=True, env=bare, cwd=folder)
        sizes: dict[str, int] = {}
        for top in packages.iterdir():
            if not top.name.startswith(tools):
                files = [top] if top.is_file() else top.rglob("*")
                name = top.name.partition("-")[0].partition(".")[0]
                size = sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")
                sizes[name] = sizes.get(name, 0) + size
        parts = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in sorted(sizes.items(), key=lambda x: -x[1])[:5])
        total = sum(sizes.values())
        print(f"installed with all it needs: {total / 1e6:.0f} MB ({parts})", flush=True)
        assert total < LARGEST_OF_ALL, f"all takes {total / 1e6:.0f} MB, wanted: {LARGEST_OF_ALL / 1e6:.0f} at most"
        own_size = sizes["pullback"]
        assert own_size < LARGEST, f"pullback itself takes {own_size / 1e6:.0f} MB, wanted: {LARGEST / 1e6:.0f} at most"


if __name__ == "__main__":
    sys.exit(main())
