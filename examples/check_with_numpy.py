"""Runs `volery ope` and `volery matvec` as two processes each, on data sets that come with scikit-learn, and compares with NumPy.

    pip install numpy scikit-learn
    cargo build --release
    python examples/check_with_numpy.py target/release/volery

Fails at the first result that differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

P = 2**61 - 1


def pair(binary, verb, sender, receiver):
    """Both sides of a run; gives the receiver's standard output."""
    listen = subprocess.Popen(
        [binary, verb, "--role", "sender", "--listen", "127.0.0.1:0", *sender],
        stderr=subprocess.PIPE,
        text=True,
    )
    line = next(line for line in listen.stderr if "listening on" in line)
    address = line.split()[-1]
    done = subprocess.run(
        [binary, verb, "--role", "receiver", "--connect", address, *receiver],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    listen.stderr.read()
    if listen.wait() != 0:
        sys.exit(f"the sender of {verb} failed")
    return done.stdout


def same(name, there, here):
    if not np.array_equal(there, here):
        sys.exit(f"{name}: the results differ")
    print(f"{name}: equal to NumPy")


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = lambda name: str(folder / name)

        # A polynomial whose coefficients are all pixels of the digits, at the labels of the first.
        digits, labels = load_digits(return_X_y=True)
        coefficients = digits.astype(np.uint64).ravel()
        points = (labels[:5].astype(np.uint64) + np.uint64(2)) * np.uint64(10**15)
        np.save(path("p.npy"), coefficients)
        np.save(path("z.npy"), points)
        pair(
            binary,
            "ope",
            ["--input", path("p.npy")],
            ["--points", path("z.npy"), "--out", path("values.npy")],
        )
        plain = []
        for z in points.tolist():
            value = 0
            for c in reversed(coefficients.tolist()):
                value = (value * z + c) % P
            plain.append(value)
        degree = len(coefficients) - 1
        same(f"polynomial of degree {degree}", np.load(path("values.npy")), np.array(plain, np.uint64))

        # The digits, times a random vector, in both rings.
        for ring, modulus in [("fp61", P), ("z64", 2**64)]:
            x = rng.integers(0, modulus, digits.shape[1], np.uint64, endpoint=False)
            np.save(path("a.npy"), digits.astype(np.uint64))
            np.save(path("x.npy"), x)
            out = path(f"{ring}.npy")
            pair(
                binary,
                "matvec",
                ["--input", path("a.npy"), "--ring", ring],
                ["--input", path("x.npy"), "--ring", ring, "--out", out],
            )
            exact = digits.astype(np.int64).astype(object) @ x.astype(object) % modulus
            same(f"digits, 1797 x 64, {ring}", np.load(out), exact.astype(np.uint64))

        # Real numbers.
        for name, load, bound in [("diabetes", load_diabetes, 1.0), ("breast cancer", load_breast_cancer, 8192.0)]:
            a = np.ascontiguousarray(load().data)
            x = rng.standard_normal(a.shape[1])
            np.save(path("a.npy"), a)
            np.save(path("x.npy"), x)
            format = ["--matrix-bound", str(bound), "--vector-bound", "8"]
            pair(
                binary,
                "matvec",
                ["--input", path("a.npy"), *format],
                ["--input", path("x.npy"), *format, "--force", "--out", path("y.npy"), "--report", path("r.json")],
            )
            deviation = np.max(np.abs(np.load(path("y.npy")) - a @ x))
            allowed = json.load(open(path("r.json")))["result"]["error_bound"]
            print(f"{name}, {a.shape[0]} x {a.shape[1]}: largest deviation from NumPy {deviation:.3g}, bound {allowed:.3g}")
            if not deviation <= allowed + 1e-9:
                sys.exit("the deviation is above the bound")


if __name__ == "__main__":
    main()
