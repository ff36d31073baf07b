#!/usr/bin/env python3
"""Compares two files of measurements: what is faster or slower beyond the spread of the runs.

    python3 lab/compare.py A.json B.json                    files of volery-bench, the later one last
    python3 lab/compare.py A.json B.json --machine aes      of two machines, in what each can do

A phase is compared by its time for one output. It is faster or slower *beyond the spread* if the
ranges of the two files do not overlap. Equal programs show this too: one row in 10 with three runs
each, one row in 126 with five. The difference must therefore also exceed a threshold, and a file of
hundreds of rows still has some by chance. A phase that takes less than a hundredth of its run in
both files is not compared.

The exit status is 1 if a measurement in the second file is slower by more than the threshold with
all runs slower than all of the first, was left out there as too long, or sends more by more than
the threshold; and where the files cannot be compared. It is 2 for a wrong call.
"""

import argparse
import json
import math
import statistics
import sys
from collections import Counter
from pathlib import Path

from tables import short

# The calibrations of a machine, in nanoseconds, and the name of what takes them.
UNITS = {
    "none": (None, ""),
    "aes": ("nanoseconds_aes_block", "AES blocks"),
    "reads": ("nanoseconds_random_read", "reads"),
    "copies": ("nanoseconds_copied_byte", "copied bytes"),
    "hashes": ("nanoseconds_ot_hash", "hashes"),
}
# The part of a run below which a phase is not compared, and the runs that a spread takes.
LEAST, RUNS = 0.01, 3


def refuse(what, hint=""):
    print(f"error: {what}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr)
    sys.exit(1)


def load(path):
    try:
        results = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        refuse(f"{path}: {error}")
    known = isinstance(results, dict) and results.get("format") == "volery measurements"
    if not known or results.get("schema") != 1:
        refuse(
            f"{path} has no measurements of this version",
            "volery-bench paper and volery-bench run --json write such files",
        )
    return results


def name(measurement):
    key = measurement["key"]
    threads = key["threads"]
    return f"{key['protocol']}, n = {key['n']}, {key['link']}, {threads} thread{'s'[:threads != 1]} a party"


def measured(results):
    """The measurements that were not skipped, by name."""
    return {name(one): one for one in results["measurements"] if one["samples"]}


def whole(sample):
    return sum(phase["seconds"] for phase in sample["phases"])


def phase_of(sample, phase):
    return next((one for one in sample["phases"] if one["name"] == phase), None)


def outputs(sample):
    return max((phase["outputs"] for phase in sample["phases"]), default=0)


def row(files, unit, phase):
    """The times of a phase, or of all phases, in both files: lists in units, one for each run."""
    both = []
    for results, measurement in files:
        times = []
        for sample in measurement["samples"]:
            part = None if phase == "all" else phase_of(sample, phase)
            if phase != "all" and part is None:
                continue
            seconds = whole(sample) if phase == "all" else part["seconds"] / max(1, part["outputs"])
            machine = results["sittings"][sample["sitting"]]["machine"]
            times.append(seconds / (1e-9 * machine[UNITS[unit][0]] if UNITS[unit][0] else 1))
        both.append(times)
    a, b = both
    if min(len(a), len(b)) < RUNS:
        verdict = "unknown"
    elif max(b) < min(a):
        verdict = "faster"
    else:
        verdict = "slower" if min(b) > max(a) else "same"
    return a, b, ratio(statistics.median(a), statistics.median(b)), verdict


def ratio(a, b):
    return b / a if a > 0 else (math.inf if b > 0 else 1.0)


def counts(measurement, phase):
    """Whether a phase takes a part of its run that is compared."""
    shares = [
        phase_of(sample, phase)["seconds"] / max(whole(sample), sys.float_info.min)
        for sample in measurement["samples"]
        if phase_of(sample, phase)
    ]
    return bool(shares) and statistics.median(shares) >= LEAST


def phases_compared(a, b):
    """The phases that both have and that count, and all together where as much was made."""
    first, second = a["samples"][0], b["samples"][0]
    phases = [
        phase["name"]
        for phase in first["phases"]
        if (other := phase_of(second, phase["name"]))
        and (other["outputs"] == 0) == (phase["outputs"] == 0)
        and (counts(a, phase["name"]) or counts(b, phase["name"]))
    ]
    several = max(len(first["phases"]), len(second["phases"])) > 1
    return phases + (["all"] if several and outputs(first) == outputs(second) else [])


def traffic(measurement):
    """Bytes for each output, in both directions."""
    return statistics.median(
        sum(phase["bytes"] for phase in sample["phases"]) / max(1, outputs(sample))
        for sample in measurement["samples"]
    )


def in_words(unit, times):
    """A time with its range and unit."""
    factor, of = 1, UNITS[unit][1]
    if unit == "none":
        median = statistics.median(times)
        scales = ((1, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us"), (0, 1e9, "ns"))
        factor, of = next(scale[1:] for scale in scales if median >= scale[0])
    median, least, most = (short(f(times) * factor) for f in (statistics.median, min, max))
    return f"{median} ({least}..{most}) {of}"


def machine(results):
    last = results["sittings"][-1]["machine"]
    return f"{last.get('processor')} with {last['cores']} cores and instructions {last['cpu']}"


def nearest(a, b):
    """The differences between the two most similar measurements."""
    keys = [[one["key"] for one in measured(results).values()] for results in (a, b)]
    differ = [
        [f"{field} is {one[field]} and {other[field]}" for field in one if one[field] != other[field]]
        for one in keys[0]
        for other in keys[1]
    ]
    return ": in the most similar ones " + ", ".join(min(differ, key=len)) if differ else ""


def compare(a, b, unit, past):
    """The changes, as (ratio, words); all verdicts; the ends that decide the status; lists to tell."""
    changes, verdicts, worse = [], Counter(), Counter()
    lists = {
        "measurements in A only": [],
        "measurements in B only": [one for one in measured(b) if one not in measured(a)],
        "phases that one of the two has": [],
        "measured with other parameters or security, and compared all the same": [],
    }
    in_a, in_b, everything = measured(a), measured(b), {name(one): one for one in b["measurements"]}
    for key, first in in_a.items():
        if key not in everything:
            lists["measurements in A only"].append(key)
            continue
        if key not in in_b:
            before, after = statistics.median(map(whole, first["samples"])), everything[key]["skipped_seconds"]
            texts = [f"about {short(seconds)} s" for seconds in (before, after)]
            changes.append((ratio(before, after), [key, "all", *texts, "left out"]))
            worse["left out"] += 1
            continue
        second = in_b[key]
        for phase in phases_compared(first, second):
            times_a, times_b, change, verdict = row([(a, first), (b, second)], unit, phase)
            verdicts[verdict] += 1
            worse["slower"] += verdict == "slower" and past(change) and change > 1
            if verdict in ("faster", "slower") or verdict == "unknown" and past(change):
                changes.append((change, [key, phase, in_words(unit, times_a), in_words(unit, times_b), verdict]))
        sent = traffic(first), traffic(second)
        # Counts: equal ones differ only by rounding.
        if abs(sent[0] - sent[1]) > 1e-9 * max(sent):
            change = ratio(*sent)
            worse["more"] += past(change) and change > 1
            texts = [f"{short(each)} bytes" for each in sent]
            changes.append((change, [key, "traffic", *texts, "sends more" if change > 1 else "sends less"]))
        names = [{phase["name"] for phase in one["samples"][0]["phases"]} for one in (first, second)]
        lists["phases that one of the two has"] += [f"{key}: {phase}" for phase in sorted(names[0] ^ names[1])]
        if any(first.get(field) != second.get(field) for field in ("plan", "security_bits")):
            lists["measured with other parameters or security, and compared all the same"].append(key)
    changes.sort(key=lambda change: -change[0])
    return changes, verdicts, worse, lists


def main():
    def percent(text):
        if not 0 <= float(text) <= 1e6:
            raise ValueError
        return float(text)

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", metavar="A.json")
    parser.add_argument("b", metavar="B.json")
    parser.add_argument("--threshold", type=percent, default=10.0, metavar="PERCENT", help="10 unless told")
    parser.add_argument("--machine", choices=UNITS, default="none", help="the unit of times")
    parser.add_argument("-q", "--quiet", action="store_true", help="the status alone")
    parser.add_argument("-v", "--verbose", action="store_true", help="names in place of numbers")
    call = parser.parse_args()
    a, b = load(call.a), load(call.b)
    if call.machine == "none" and machine(a) != machine(b):
        print(
            f"the files are of two machines, {machine(a)}, and {machine(b)}: --machine compares in "
            "units of what each can do",
            file=sys.stderr,
        )
    threshold = 1 + call.threshold / 100

    def past(change):
        return change > threshold or change * threshold < 1

    changes, verdicts, worse, lists = compare(a, b, call.machine, past)
    if not changes and not verdicts:
        both = f"{call.a} and {call.b}"
        if measured(a).keys() & measured(b).keys():
            refuse(
                f"{both} have measurements in common, but no phase of them that takes time",
                "the programs that measured them divide a run into different phases",
            )
        refuse(
            f"{both} have no measurement in common{nearest(a, b)}",
            "two measurements match if protocol, n, link and threads are equal",
        )
    if not call.quiet:
        for change, (key, phase, before, after, what) in changes:
            mark = "*" if past(change) else " "
            print(f"{mark} {change:7.3f}  {what:10}  {key}: {phase}: {before} -> {after}")
        print(
            f"beyond the spread: {verdicts['faster']} faster, {verdicts['slower']} slower; within it: "
            f"{verdicts['same']}; of fewer than three runs: {verdicts['unknown']}"
        )
        for what, names in lists.items():
            if names:
                print(f"{what}: {len(names)}")
                print("".join(f"  {one}\n" for one in names) if call.verbose else "", end="")
        for file, results in (("A", a), ("B", b)):
            remarks = [remark for sitting in results["sittings"] for remark in sitting["remarks"]]
            for remark in dict.fromkeys(remarks):
                print(f"of {file}: {remark}")
    if sum(worse.values()):
        refuse(
            f"slower by more than {call.threshold:g} % beyond the spread: {worse['slower']}; sending so "
            f"much more: {worse['more']}; left out as too long: {worse['left out']}"
        )


if __name__ == "__main__":
    main()
