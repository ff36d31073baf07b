"""compare.py: what it finds in two files, and the files that it refuses."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = Path(__file__).with_name("compare.py")
MACHINE = {"processor": "one", "cores": 2, "cpu": "aes", "nanoseconds_aes_block": 1.0}
MACHINE |= {"nanoseconds_random_read": 1.0}


def measurement(protocol, milliseconds):
    """Three runs, each with a setup of 1, 2 and 3 ms."""
    def phase(name, outputs, time):
        return {"name": name, "outputs": outputs, "seconds": time / 1e3, "bytes": 9, "messages": 1}

    samples = [
        {"sitting": 0, "phases": [phase("setup", 0, 1 + run), phase("stream", 1000, time)]}
        for run, time in enumerate(milliseconds)
    ]
    key = {"protocol": protocol, "n": 1000, "link": "loopback", "threads": 1}
    return {"key": key, "plan": None, "security_bits": None, "skipped_seconds": None, "samples": samples}


def file_of(milliseconds):
    """Two measurements, the first of which has these times of its stream."""
    sitting = {"machine": MACHINE, "remarks": []}
    both = [measurement("cot", milliseconds), measurement("vole", [1, 2, 3])]
    return {"format": "volery measurements", "schema": 1, "sittings": [sitting], "measurements": both}


@pytest.fixture
def compare(tmp_path):
    def call(a, b, *more):
        for name, results in (("a.json", a), ("b.json", b)):
            (tmp_path / name).write_text(json.dumps(results))
        words = [sys.executable, COMPARE, tmp_path / "a.json", tmp_path / "b.json", *more]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    return call


BEFORE, SLOWER, WIDER = map(file_of, ([10, 11, 12], [13, 14, 15], [5, 14, 30]))


def line(done, fragment):
    return next(line for line in done.stdout.splitlines() if fragment in line)


def test_a_slower_measurement_decides_the_status(compare):
    done = compare(BEFORE, SLOWER)
    assert done.returncode == 1
    assert "beyond the spread: 1; sending so much more: 0; left out as too long: 0" in done.stderr
    found = line(done, "stream")
    assert found.startswith("*   1.273  slower") and "11.0 (10.0..12.0) us -> 14.0 (13.0..15.0) us" in found, found
    for a, b, more, counts in (
        (BEFORE, SLOWER, ["--threshold", "30"], "0 faster, 1 slower"),
        (SLOWER, BEFORE, [], "1 faster, 0 slower"),
        # The median is as much slower, but some runs are not.
        (BEFORE, WIDER, [], "0 faster, 0 slower"),
    ):
        done = compare(a, b, *more)
        assert (done.returncode, counts in done.stdout) == (0, True), done
    done = compare(BEFORE, SLOWER, "-q")
    assert (done.returncode, done.stdout) == (1, "")


def test_another_machine_is_compared_in_its_own_units(compare):
    def machine(name, block, milliseconds):
        results = copy.deepcopy(file_of(milliseconds))
        del results["measurements"][1]
        for sample in results["measurements"][0]["samples"]:
            del sample["phases"][0]
        results["sittings"][0]["machine"] = MACHINE | {"processor": name, "nanoseconds_aes_block": block}
        return results

    fast, slow = machine("fast", 1.0, [10, 11, 12]), machine("slow", 4.0, [40, 44, 48])
    for unit, status in (("none", 1), ("aes", 0), ("reads", 1)):
        done = compare(fast, slow, "--machine", unit)
        assert done.returncode == status, done
        assert ("two machines" in done.stderr) == (unit == "none")


def test_phases_that_are_compared(compare):
    """All phases together only where as much was made; none that is a hundredth of its run."""
    more, short = copy.deepcopy(BEFORE), copy.deepcopy(BEFORE)
    for sample in more["measurements"][0]["samples"]:
        sample["phases"][1]["outputs"] = 2000
    for sample in short["measurements"][0]["samples"]:
        sample["phases"][0]["seconds"] = 80e-9
    for a, b, rows in ((BEFORE, BEFORE, 6), (BEFORE, more, 5), (short, short, 5), (short, BEFORE, 6)):
        counts = line(compare(a, b), "beyond the spread").replace(",", ";").split(";")
        numbers = [int(word) for part in counts for word in part.replace(":", "").split() if word.isdigit()]
        assert sum(numbers) == rows, counts


def test_bytes_and_left_out_measurements_decide_too(compare):
    after = copy.deepcopy(BEFORE)
    for sample in after["measurements"][1]["samples"]:
        sample["phases"][1]["bytes"] = 1_000_000
    after["measurements"][0] |= {"samples": [], "skipped_seconds": 44.0}
    done = compare(BEFORE, after)
    assert done.returncode == 1
    assert "sending so much more: 1; left out as too long: 1" in done.stderr
    assert "vole" in line(done, "sends more") and "about 44" in line(done, "left out")
    assert compare(after, BEFORE).returncode == 0


def test_reasons_against_a_comparison_are_told(compare):
    before, after = copy.deepcopy(BEFORE), copy.deepcopy(BEFORE)
    before["sittings"][0]["remarks"] = ["It was night."]
    after["sittings"][0] = {"machine": MACHINE | {"cores": 77}, "remarks": ["It was day."]}
    after["measurements"][0]["security_bits"] = 17
    for sample in after["measurements"][0]["samples"]:
        sample["phases"][0]["name"] = "begin"
    del after["measurements"][1]["samples"][1:]
    done = compare(before, after, "-v")
    assert (done.returncode, "77 cores" in done.stderr) == (0, True), done
    for fragment in (
        "phases that one of the two has: 2\n  cot",
        "measured with other parameters or security, and compared all the same: 1\n  cot",
        "of A: It was night.\nof B: It was day.",
        "of fewer than three runs: 3",
    ):
        assert fragment in done.stdout, (fragment, done.stdout)


def test_files_that_cannot_be_compared(compare, tmp_path):
    first, second = copy.deepcopy(BEFORE), copy.deepcopy(BEFORE)
    del first["measurements"][1], second["measurements"][0]
    done = compare(BEFORE, first, "-v")
    assert (done.returncode, "measurements in A only: 1\n  vole" in done.stdout) == (0, True), done
    for a, b, more, status, fragment in (
        (first, second, [], 1, "in common: in the most similar ones protocol is cot and vole"),
        (BEFORE, BEFORE | {"schema": 2}, [], 1, "b.json has no measurements of this version"),
        ([], BEFORE, [], 1, "a.json has no measurements of this version"),
        (BEFORE, BEFORE, ["--threshold", "-1"], 2, "-1"),
        (BEFORE, BEFORE, ["--machine", "sundial"], 2, "sundial"),
    ):
        done = compare(a, b, *more)
        assert (done.returncode, fragment in done.stderr) == (status, True), done
    absent = subprocess.run(
        [sys.executable, COMPARE, tmp_path / "a.json", tmp_path / "absent.json"],
        capture_output=True, text=True, check=False,
    )
    assert (absent.returncode, "absent.json" in absent.stderr) == (1, True)
