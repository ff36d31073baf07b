"""Tables, plots and findings: the measurements of a file of results beside the published figures.

`volery-bench paper` writes into the file what stands in each line of each table: the measurements
that a figure is taken from, and the figures that follow from parameters. The data files in
`published` have the rest. A value is a dictionary whose `kind` is none, text, published, measured,
below (a difference that is lost in the spread of its terms), computed, or skipped.
"""

import json
import math
import statistics
from collections import namedtuple
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

MEBIBYTE = 1 << 20
NONE = {"kind": "none"}

# A quantity of one run: measured, or `whole - less`, the difference of two measured ones.
Term = namedtuple("Term", "whole less", defaults=[0.0])


def short(number):
    """A number in about three digits."""
    size = abs(number)
    if size == 0:
        return "0"
    if size >= 100:
        return f"{number:.0f}"
    return f"{number:.{max(0, min(12, 2 - math.floor(math.log10(size))))}f}"


def number(value):
    """The number in a value; the median of several; None where there is none."""
    if value["kind"] == "measured":
        return value["spread"]["median"]
    return value.get("value")


def ratio(value):
    """Ours over the published one, where a value stands beside one."""
    ours, published = number(value), value.get("published")
    return ours / published if ours is not None and published else None


def text(words):
    return {"kind": "text", "text": words}


def computed(value, published=None):
    return {"kind": "computed", "value": value, "published": published}


def spread(values):
    """The median of several values, and their range; None of no values."""
    values = list(values)
    if not values:
        return None
    return {"median": statistics.median(values), "least": min(values), "most": max(values),
            "count": len(values)}


def exactly(value):
    return {"median": value, "least": value, "most": value, "count": 1}


def measured(values, published):
    return {"kind": "measured", "spread": spread(values), "published": published}


def of_terms(terms, published):
    """The value of one term per run. Where the subtracted quantity hides it in at least one run,
    it is below a bound: the largest difference of the two terms, or the difference between their
    runs if that is larger; for a single run, the whole."""
    if not terms:
        return NONE
    differences = [term.whole - term.less for term in terms]
    if min(differences) > 0:
        return measured(differences, published)
    whole, less = spread(term.whole for term in terms), spread(term.less for term in terms)
    differ = (whole["most"] - whole["least"]) + (less["most"] - less["least"])
    bound = min(max(differ, whole["most"] - less["least"]), whole["most"])
    known = len(terms) > 1 and bound > 0
    return {"kind": "below", "bound": bound if known else whole["most"], "count": len(terms)}


# Runs --------------------------------------------------------------------------------------------


def phase(sample, name):
    return next((phase for phase in sample["phases"] if phase["name"] == name), None)


def total(sample, of):
    return sum(phase[of] for phase in sample["phases"])


def parts(sample, outputs):
    """The parts of a run of a stream, whose phases `lab/src/papers/cots.rs` describes; `outputs` are
    those of a checked main round, or None. None if the sample has other phases."""
    first, stream = phase(sample, "first"), phase(sample, "stream")
    if not first or not stream:
        return None
    found = {"setup": Term(first["seconds"]), "setup-bytes": first["bytes"]}
    found |= {of: stream[of] for of in ("seconds", "bytes", "outputs")}
    begin, rest = phase(sample, "begin"), phase(sample, "rest")
    if begin and rest:
        # The setup contains the first main round, which takes as long as the next.
        found["setup"] = Term(first["seconds"], begin["seconds"])
        found["setup-bytes"] = max(0, first["bytes"] - begin["bytes"])
        for of in ("seconds", "bytes", "outputs"):
            found[of] += begin[of] + rest[of]
        if outputs and rest["outputs"]:
            # An output that is kept for the next round takes as long as one that is handed out.
            lpn = rest["seconds"] * outputs / rest["outputs"]
            each = 1.0 / (begin["outputs"] + rest["outputs"])
            found["trees"] = Term(begin["seconds"] * each, (lpn - rest["seconds"]) * each)
            found["lpn"] = lpn * each
    return found if found["outputs"] else None


def term(quantity, sample, of):
    """A quantity of a run, whose parts are `of`; None if the run has none of that name."""
    if quantity in ("milliseconds", "seconds"):
        return Term((1e3 if quantity == "milliseconds" else 1.0) * total(sample, "seconds"))
    if quantity in ("bytes", "messages"):
        return Term(float(total(sample, quantity)))
    if quantity in ("offline", "online", "traffic"):
        part = phase(sample, "offline" if quantity == "offline" else "online")
        if part is None:
            return None
        return Term(part["bytes"] / MEBIBYTE if quantity == "traffic" else 1e3 * part["seconds"])
    if of is None:
        return None
    nanoseconds = 1e9 * of["seconds"] / of["outputs"]
    if quantity == "nanoseconds":
        return Term(nanoseconds)
    if quantity == "ten-million":
        return Term(10.0 * nanoseconds)
    if quantity == "bits":
        return Term(of["bytes"] * 8.0 / of["outputs"])
    if quantity == "setup":
        return Term(of["setup"].whole * 1e3, of["setup"].less * 1e3)
    if quantity == "setup-bytes":
        return Term(of["setup-bytes"] / 1e6)
    if quantity == "trees" and "trees" in of:
        return Term(of["trees"].whole * 1e9, of["trees"].less * 1e9)
    if quantity == "lpn" and "lpn" in of:
        return Term(1e9 * of["lpn"])
    return None


def name(key):
    return tuple(sorted(key.items()))


class Measurements:
    """The measurements of a file of results, by key, and those that it was planned to have."""

    def __init__(self, results):
        self.all, self.plans = results["measurements"], results["more"]["planned"]
        self.by_name = {name(one["key"]): one for one in self.all}

    def find(self, key):
        return self.by_name.get(name(key))

    def planned(self, place):
        return [self.plans[number] for number in place["measurements"]]

    def seconds(self, key):
        samples = (self.find(key) or {}).get("samples")
        return statistics.median(total(sample, "seconds") for sample in samples) if samples else None

    def value(self, place, about, published):
        """The value of one of our columns; a row `about` a value has nothing to compare with."""
        planned, quantity = self.planned(place), place["quantity"]
        if not planned:
            return NONE
        published = None if about else published
        if "computed" in place:
            return computed(place["computed"], published if place["computed"] else None)
        key = planned[0]["key"]
        if quantity in COMPARED:
            return COMPARED[quantity](self, key, published) or NONE
        found = [(one, self.find(one["key"])) for one in planned if self.find(one["key"])]
        terms = []
        for one, measurement in found:
            # The parts of a round are of the same parameters only.
            outputs = one["round"] if measurement["plan"] == one["plan"] else None
            for sample in measurement["samples"]:
                terms.append(term(quantity, sample, parts(sample, outputs)))
        terms = [one for one in terms if one]
        skipped = [one["skipped_seconds"] for _, one in found if one["skipped_seconds"] is not None]
        if not terms and skipped:
            return {"kind": "skipped", "seconds": skipped[0]}
        return of_terms(terms, published)

    # Values that compare two measurements.

    def speed_up(self, key, published):
        one, many = self.seconds(key | {"threads": 1}), self.seconds(key)
        return computed(one / many, published) if one is not None and many is not None else None

    def extra(self, key, published):
        """The time of a run beyond that of another protocol, run by run. The difference may be less
        than zero; one that is lost in the spread has no ratio."""
        more = self.find(key)
        less = self.find(key | {"protocol": key["protocol"].replace("uniform", "regular")})
        if not more or not less:
            return None

        def each(measurement):
            return [term("nanoseconds", sample, parts(sample, None)) for sample in measurement["samples"]]

        values = [a.whole - b.whole for a, b in zip(each(more), each(less)) if a and b]
        return measured(values, published if min(values) > 0 else None) if values else None


COMPARED = {"speed-up": Measurements.speed_up, "extra": Measurements.extra}


# Sections ----------------------------------------------------------------------------------------


@cache
def published_file(experiment):
    """The data file of `ferret-table-3`."""
    paper, kind, place = experiment.split("-")
    path = Path(__file__).parent / "published" / paper / f"{kind}{place}.json"
    return json.loads(path.read_text())


def column(heading, unit=None):
    return {"heading": heading, "unit": unit or "", "numbers": unit is not None}


class Filled:
    """A table of a data file with our values. Lines without a published value and without a
    measurement are left out."""

    def __init__(self, spec, lines, measurements):
        self.spec, self.lines = spec, []
        for line in lines:
            row = spec["rows"][line["row"]]
            values = row.get("values") or [None] * len(spec["columns"])
            published = values[spec["columns"].index(line["column"])]
            ours = [measurements.value(side, row.get("about"), published) for side in line["sides"]]
            if published is not None or any(value != NONE for value in ours):
                self.lines.append((row, line["column"], published, ours))
        self.beside = any(published is not None for _, _, published, _ in self.lines)

    def ratio(self, values, ratio):
        over, under = (number(values[place]) for place in ratio[1:])
        return over / under if over is not None and under is not None else None

    def table(self):
        spec = self.spec
        ratios = spec.get("ratios", [])
        columns = [column(label) for label in spec["labels"]]
        pivot = spec.get("pivot")
        if pivot:
            columns.append(column(pivot, None if pivot == "link" else ""))
        headings = ["published"] * self.beside + [side["heading"] for side in spec["sides"]]
        columns += [column(heading, spec["unit"]) for heading in headings]
        columns += [column(one[0], "") for one in ratios]
        rows = []
        for row, at, published, values in self.lines:
            cells = [text(label) for label in row.get("labels", [])] + [text(at)] * bool(pivot)
            if self.beside:
                if published is None:
                    cells.append(NONE)
                elif row.get("about"):
                    cells.append(text(f"about {published:.12g}"))
                else:
                    cells.append({"kind": "published", "value": float(published)})
            found = [self.ratio(values, one) for one in ratios]
            rows.append(cells + values + [NONE if one is None else computed(one) for one in found])
        return {"caption": spec["caption"], "columns": columns, "rows": rows, "notes": spec.get("notes", [])}

    def findings(self):
        """A sentence for each of our columns that is compared with published values, and for each
        ratio."""
        kinds = [(side["heading"], " of the published value", [ratio(values[place]) for *_, values in self.lines])
                 for place, side in enumerate(self.spec["sides"])]
        kinds += [(one[0], "", [self.ratio(values, one) for *_, values in self.lines])
                  for one in self.spec.get("ratios", [])]
        for heading, of, values in kinds:
            found = spread(value for value in values if value is not None)
            if found:
                median, least, most = (short(found[end]) for end in ("median", "least", "most"))
                lines = f"{found['count']} line" + "s" * (found["count"] != 1)
                yield (f"{self.spec['caption']}: {heading} {least} to {most}{of}, median {median} "
                       f"({lines}).")

    def plots(self):
        """The plots of the table: one, or one for each first label."""
        spec = self.spec
        if not spec.get("plot"):
            return
        facet, pivot = spec.get("facet", False), spec.get("pivot") or ""
        for title in dict.fromkeys(row["labels"][0] if facet else "" for row in spec["rows"]):
            rows = [row for row in spec["rows"] if not facet or row["labels"][0] == title]
            series = [line for row in rows for line in self.series(row, facet)]
            if series:
                label = "bandwidth, Mbit/s" if pivot == "link" else pivot
                yield {"title": f"{spec['caption']} {title}".strip(), "series": series,
                       "x": {"label": label, "unit": "", "scale": spec["plot"]},
                       "y": {"label": "", "unit": spec["unit"], "scale": "log"}}

    def series(self, row, facet):
        """The lines of a plot of a row: published, then ours."""
        def at(column):
            return megabits(column) if self.spec.get("pivot") == "link" else float(outputs(column))

        lines = [line for line in self.lines if line[0] is row]
        labels = row.get("labels", [])[int(facet):]
        printed = [] if row.get("about") else [
            {"x": at(column), "y": exactly(float(published))}
            for _, column, published, _ in lines if published is not None]
        found = [("published", True, printed)]
        for place, side in enumerate(self.spec["sides"]):
            points = [(at(column), plotted(values[place])) for _, column, _, values in lines]
            found.append((side["heading"], False, [{"x": x, "y": y} for x, y in points if y]))
        return [{"name": ", ".join([*labels, last]), "published": printed, "points": points}
                for last, printed, points in found if points]


def plotted(value):
    """A value as a point of a plot, if it was measured: one below a bound is drawn at the bound, with
    a range down to zero."""
    if value["kind"] == "below":
        return exactly(value["bound"]) | {"least": 0.0, "count": value["count"]}
    return value.get("spread")


def outputs(column):
    return 1 << int(column[2:]) if column.startswith("2^") else int(column)


def megabits(link):
    """The rate of `10Mbit` or `1Gbit,20ms`; of a link without one, that of a fast one."""
    rate = link.split(",")[0]
    for unit, factor in (("Gbit", 1e3), ("Mbit", 1.0)):
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    return 1e5


def parameters(spec, lines, measurements):
    """The parameters of each protocol: those of the measurements or, where there are none yet, the
    planned ones; None if no protocol has any."""
    found = {}
    for table, of_table in zip(spec["tables"], lines):
        for line in of_table:
            for planned in (one for side in line["sides"] for one in measurements.planned(side)):
                have = measurements.find(planned["key"]) or planned
                if have["plan"] is None or have["security_bits"] is None:
                    continue
                at = found.setdefault((planned["key"]["protocol"], have["plan"], have["security_bits"]), [])
                if table.get("pivot") and line["column"] not in at:
                    at.append(line["column"])
    columns = [column("measurement"), column("parameters"), column("claimed", "bits"), column("at")]
    rows = [[text(protocol), text(plan), computed(float(bits)), text(" ".join(at))]
            for (protocol, plan, bits), at in sorted(found.items())]
    return {"caption": "Parameters", "columns": columns, "rows": rows, "notes": []} if rows else None


def section(experiment, lines, measurements):
    """The results of an experiment beside the published figures."""
    spec = published_file(experiment)
    filled = [Filled(table, of_table, measurements) for table, of_table in zip(spec["tables"], lines)]
    filled = [one for one in filled if one.lines]
    plan = parameters(spec, lines, measurements)
    return {
        "name": experiment,
        "title": f"{spec['what']} of {spec['short']}: {spec['caption']}",
        "source": f"{spec['paper']}, {spec['what']}, section {spec['section']}",
        **{part: spec[part] for part in ("note", "there", "ours", "differences")},
        "findings": [sentence for one in filled for sentence in one.findings()] + spec["findings"],
        "tables": [one.table() for one in filled] + [plan] * bool(plan),
        "plots": [plot for one in filled for plot in one.plots()],
    }


def sections(results):
    """Those of all experiments of a file of `volery-bench paper`."""
    measurements, more = Measurements(results), results["more"]
    return [section(name, lines, measurements) for name, lines in zip(more["experiments"], more["lines"])]


# The choice of `auto` ----------------------------------------------------------------------------


# The protocol that `auto` never chooses.
BY_NAME_ONLY = "low-communication"


def choices(results):
    """Of a file of `volery-bench grid`: for each link a header and rows, and a sentence about all."""
    by_name = {name(one["key"]): one for one in results["measurements"]}

    def taken(way):
        """The seconds of a protocol, and a sign if they are extrapolated from a smaller number."""
        have = by_name[name(way["key"])]
        seconds = [total(sample, "seconds") for sample in have["samples"]]
        return (statistics.median(seconds), "") if seconds else (have["skipped_seconds"] or math.inf, "~")

    def shown(way):
        seconds, sign = taken(way)
        return f"{sign}{seconds:.4f}"

    spots = results["more"]["spots"]
    ways = dict.fromkeys(way["name"] for spot in spots for way in spot["ways"][1:])
    header = ["n", "auto", "its seconds", "fastest", "seconds", "ratio", *ways]
    found, ratios = {}, []
    for spot in spots:
        auto, *named = spot["ways"]
        best = min((way for way in named if way["name"] != BY_NAME_ONLY), key=lambda way: taken(way)[0])
        ratios.append(taken(auto)[0] / taken(best)[0])
        each = {way["name"]: shown(way) for way in named}
        row = [str(spot["n"]), spot["chosen"] or "(not run)", shown(auto), best["name"], shown(best),
               f"{ratios[-1]:.2f}", *(each.get(way, "-") for way in ways)]
        found.setdefault(spot["link"], []).append(row)
    within = sum(one <= 1.1 for one in ratios)
    return header, found, (f"auto within 10 % of the fastest at {within} of {len(ratios)} spots, at worst "
                           f"{max(ratios):.2f} times its time; ~: extrapolated from a smaller number")


# The paragraphs above all tables -----------------------------------------------------------------


def intro(results):
    """Time, machine and method of the measurements, and the meaning of the figures."""
    sessions = results["sittings"]
    if not sessions:
        return ["Nothing was measured: all figures are computed from parameters."]
    lines, described = [], None
    for session in sessions:
        machine = machine_of(session["machine"])
        lines.append(when(session) + (f" Machine: {machine}." if machine != described else ""))
        lines.append(calibration(session["machine"]))
        described = machine
    lines.append(figures(results["measurements"]))
    lines += [remark for session in sessions for remark in session["remarks"]]
    mixed = sum(mixes(one, sessions) for one in results["measurements"])
    if mixed:
        lines.append("Measurements with runs by another build or on another machine than their others: "
                     f"{mixed}; their medians mix them.")
    return list(dict.fromkeys(lines))


def when(session):
    date = datetime.fromtimestamp(session["began"], timezone.utc)
    loads = [session["load"], session.get("load_after")]
    before, after = ("unknown" if load is None else f"{load:.2f}" for load in loads)
    return (f"Measured from {date:%Y-%m-%d %H:%M} UTC on, {short(session['seconds'])} s of runs, by volery "
            f"{session['program'].strip()}; load average over a minute {before} before and {after} after.")


def machine_of(machine):
    memory = machine["memory_bytes"]
    memory = "" if memory is None else f", {short(memory / (1 << 30))} GiB of memory"
    return (f"{machine['processor'] or 'an unnamed processor'}, {machine['cores']} core"
            f"{'s' * (machine['cores'] != 1)} for both parties{memory}, {machine['system']}, "
            f"instructions {machine['cpu']}")


def calibration(machine):
    def each(unit, what):
        nanoseconds = machine[f"nanoseconds_{unit}"]
        return f"{short(1e3 / nanoseconds)} million {what} a second ({short(nanoseconds)} ns each)"

    copied = machine["nanoseconds_copied_byte"]
    return ("One thread of it, in the same session: " + ", ".join([
        each("aes_block", "AES blocks"), each("ot_hash", "OT hashes"),
        each("random_read", "random 16-byte reads from 2 MiB"), each("random_read_9_mib", "from 9 MiB"),
    ]) + f", {short(1 / copied)} GB copied a second ({short(copied)} ns a byte).")


def figures(measurements):
    runs = [len(one["samples"]) for one in measurements if one["samples"]]
    times = "no run"
    if runs:
        least, most = min(runs), max(runs)
        times = f"{least} to {most} runs" if least < most else f"{most} run" + "s" * (most != 1)
    return (f"Figures are medians of {times}, with the least and the greatest beside them; a time is that "
            "of the slower party, traffic is both ways.")


def mixes(measurement, sessions):
    """Whether its runs are of sessions that differ."""
    def of(sample):
        session = sessions[sample["sitting"]]
        machine = session["machine"]
        return machine["processor"], machine["cores"], machine["cpu"], session["program"].strip()

    return len({of(sample) for sample in measurement["samples"]}) > 1
