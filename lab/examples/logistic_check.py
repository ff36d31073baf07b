"""Runs `logistic.rs` as two processes and compares the updated model with NumPy.

    pip install numpy scikit-learn
    cargo build --profile dist --example logistic
    python examples/logistic_check.py ../target/dist/examples/logistic [--data FILE]

Without a file, makes data of 20,000 x 10,000 with 0.1 % of the entries not zero, in svmlight format. Fails where the result
is further from the plain computation than the error bound in `logistic.rs`.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

ADDRESS = "127.0.0.1:7361"
SLOPE = 37 / 256


def generate(path, rows, columns, density, rng):
    """Examples whose labels follow a model of ten features that often occur."""
    x = sparse.random(rows, columns, density, "csr", random_state=rng, data_rvs=rng.standard_normal)
    x.data = np.clip(x.data, -7, 7)
    truth = rng.standard_normal(columns)
    labels = np.where(x @ truth + 0.3 * rng.standard_normal(rows) > 0, 1, -1)
    dump_svmlight_file(x, labels, str(path), zero_based=False)


def step(x, y, theta, rate, activation):
    e = activation(x @ theta) - y
    return theta - rate / x.shape[0] * (x.T @ e), e


def bound(x, e, theta, rate):
    """The largest deviation caused by rounding: see the documentation of the example."""
    size = abs(x)
    there = x.copy()
    there.data = np.ones_like(there.data)
    largest = np.max(np.abs(theta), initial=0.0)
    of_row, count = np.asarray(size.sum(axis=1)).ravel(), np.asarray(there.sum(axis=1)).ravel()
    d = SLOPE * (of_row * 2.0**-17 + count * (largest * 2.0**-13 + 2.0**-30))
    gradient = size.T @ d + 2.0**-13 * (there.T @ (np.abs(e) + d))
    return rate / x.shape[0] * np.max(gradient, initial=0.0) + 1e-12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data = options.data
        if data is None:
            data = folder / "train.svm"
            generate(data, options.rows, options.columns, options.density, rng)
        columns = None if options.data else options.columns
        x, labels = load_svmlight_file(str(data), n_features=columns, zero_based=False)
        x = sparse.csr_matrix(x)
        rows, columns = x.shape
        theta = rng.standard_normal(columns).clip(-4, 4)
        np.save(folder / "theta.npy", theta)
        public = ["--shape", f"{rows}x{columns}", "--entries", str(x.nnz)]
        start = time.monotonic()
        holder = subprocess.Popen(
            [options.binary, "holder", "--listen", ADDRESS, *public, "--data", str(data)],
            stderr=subprocess.DEVNULL,
        )
        helper = subprocess.run(
            [options.binary, "helper", "--connect", ADDRESS, *public]
            + ["--model", folder / "theta.npy", "--rate", str(options.rate), "--out", folder / "stepped.npy"],
        )
        if holder.wait() != 0 or helper.returncode != 0:
            sys.exit("a party failed")
        elapsed = time.monotonic() - start
        stepped = np.load(folder / "stepped.npy")
    plain, e = step(x, labels > 0, theta, options.rate, lambda z: 0.5 + SLOPE * z)
    true, _ = step(x, labels > 0, theta, options.rate, lambda z: 1 / (1 + np.exp(-z)))
    deviation, allowed = np.max(np.abs(stepped - plain)), bound(x, e, theta, options.rate)
    print(f"{rows} x {columns}, {x.nnz} entries, {elapsed:.2f} s with reading the data")
    print(f"largest step {np.max(np.abs(plain - theta)):.3g}, with the logistic function {np.max(np.abs(true - theta)):.3g}")
    print(f"largest deviation from NumPy {deviation:.3g}, bound {allowed:.3g}")
    if not deviation <= allowed:
        sys.exit("the deviation is above the bound")


if __name__ == "__main__":
    main()
