"""A model fitted by a C++ program: its training step is written and differentiated in Python, and exported.

The model is a damped oscillator, x'' = -k x - c x', integrated by a scan; its stiffness, damping and start are fitted
to a noisy series by gradient descent with momentum. One call exports the step (the gradient through the scan is part of
it) as a shared library with a C header. A C++ program of 30 lines runs the 300 steps, without Python, and finds the
parameters that Python finds, to the last bit.

    python -m examples.export_to_c                     # into ./oscillator
    python -m examples.export_to_c --path build/osc --cpu x86-64-v3
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.export import to_c

INTERVAL = 0.05
TRUTH = {"stiffness": 4.0, "damping": 0.3, "start": 1.5}
GUESS = {"stiffness": 3.0, "damping": 0.1, "start": 1.0}

PROGRAM = r"""// Fits the parameters of a damped oscillator with the exported training step.
#include "oscillator.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: fit FILE STEPS\n"), 2;
    std::vector<float> series;
    std::FILE *file = std::fopen(argv[1], "r");
    for (float x; file && std::fscanf(file, "%f", &x) == 1;) series.push_back(x);
    if (series.size() != SERIES) return std::fprintf(stderr, "expected %d numbers\n", SERIES), 2;

    float p[3] = {GUESS}, v[3] = {0, 0, 0};  // damping, start, stiffness: parameters and their velocities
    float q[3], w[3], loss = 0;
    for (int step = 0; step < std::atoi(argv[2]); ++step) {
        int status = training_step(p[0], p[1], p[2], v[0], v[1], v[2], series.data(),
                                   &loss, &q[0], &q[1], &q[2], &w[0], &w[1], &w[2]);
        if (status != OSCILLATOR_OK) return std::fprintf(stderr, "%s\n", oscillator_message(status)), 1;
        for (int k = 0; k < 3; ++k) p[k] = q[k], v[k] = w[k];
    }
    std::printf("%.9g %.9g %.9g %.9g\n", double(loss), double(p[0]), double(p[1]), double(p[2]));
    return 0;
}
"""


def simulate(params, length):
    """Positions of the oscillator at `length` times."""

    def advance(state, _):
        x, velocity = state
        velocity = velocity - INTERVAL * (params["stiffness"] * x + params["damping"] * velocity)
        x = x + INTERVAL * velocity
        return (x, velocity), x

    return lax.scan(advance, (params["start"], jnp.zeros_like(params["start"])), length=length)[1]


def training_step(params, velocity, series):
    """(loss, parameters, velocities) after one step of gradient descent with momentum."""
    loss = lambda params: jnp.mean((simulate(params, series.shape[0]) - series) ** 2)
    value, gradient = jax.value_and_grad(loss)(params)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.02 * jnp.clip(g, -1, 1), velocity, gradient)
    return value, jax.tree.map(jnp.add, params, velocity), velocity


def make_series(length):
    """The true oscillator, with noise."""
    noise = 0.02 * jax.random.normal(jax.random.PRNGKey(0), (length,))
    return np.asarray(simulate(jax.tree.map(jnp.float32, TRUTH), length) + noise)


def fit(series, steps):
    """(loss, parameters) in Python."""
    params = jax.tree.map(jnp.float32, GUESS)
    velocity = jax.tree.map(jnp.zeros_like, params)
    step = jax.jit(training_step)
    value = jnp.float32(0)
    for _ in range(steps):
        value, params, velocity = step(params, velocity, series)
    return float(value), {name: float(x) for name, x in params.items()}


def fit_in_cplusplus(folder, series, steps, compiler):
    """(loss, parameters) of the C++ program, compiled here."""
    guess = ", ".join(f"{GUESS[name]}f" for name in sorted(GUESS))
    (folder / "fit.cpp").write_text(PROGRAM.replace("SERIES", str(len(series))).replace("GUESS", guess))
    np.savetxt(folder / "series.txt", series, fmt="%.9g")
    command = [compiler, "-std=c++11", "-O2", "fit.cpp", "-o", "fit", "-I.", "-L.", "-loscillator"]
    subprocess.run([*command, "-Wl,-rpath,$ORIGIN"], cwd=folder, check=True)
    done = subprocess.run(["./fit", "series.txt", str(steps)], cwd=folder, check=True, capture_output=True, text=True)
    loss, *values = (float(np.float32(x)) for x in done.stdout.split())
    return loss, dict(zip(sorted(GUESS), values))


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if C++ finds what Python finds."""
    parser = argparse.ArgumentParser(prog="python -m examples.export_to_c", description=__doc__.split("\n\n")[0])
    parser.add_argument("--path", type=Path, default=Path("oscillator"), help="folder for the library")
    parser.add_argument("--length", type=int, default=200, help="numbers in the series")
    parser.add_argument("--steps", type=int, default=300, help="of gradient descent")
    parser.add_argument("--cpu", default="host", help="'host', or a level such as x86-64-v3")
    options = parser.parse_args(argv)

    series = make_series(options.length)
    example = jax.tree.map(jnp.float32, GUESS)
    began = time.perf_counter()
    library = to_c(training_step, example, example, series, path=options.path, name="oscillator", cpu=options.cpu)
    print(f"exported in {time.perf_counter() - began:.2f} s into {library.folder}:")
    for path in sorted(library.folder.iterdir()):
        if path.is_file():
            print(f"    {path.name:24} {path.stat().st_size:8d} bytes")

    results = {"true values": (float("nan"), TRUTH), "Python": fit(series, options.steps)}
    compiler = shutil.which("c++")
    if compiler is None:
        print("no C++ compiler: the program that uses the library is not compiled")
    else:
        results["C++"] = fit_in_cplusplus(library.folder, series, options.steps, compiler)
    print(f"\n{'':>12} {'loss':>12} " + " ".join(f"{name:>12}" for name in sorted(GUESS)))
    for who, (loss, params) in results.items():
        print(f"{who:>12} {loss:12.6g} " + " ".join(f"{params[name]:12.6g}" for name in sorted(GUESS)))
    if compiler is None:
        return 0
    same = results["C++"] == results["Python"]
    close = np.allclose([*results["C++"][1].values()], [*results["Python"][1].values()], rtol=1e-3)
    print("C++ and Python agree " + ("to the last bit" if same else "closely" if close else "NOT"))
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main())
