#!/usr/bin/env python3
"""Pages from a file of results of volery-bench.

    python3 lab/report.py results.json                  on the standard output, in Markdown
    python3 lab/report.py lab/results.json --markdown REPRODUCTION.md
    python3 lab/report.py results.json --out DIR        index.html and results.csv
    python3 lab/report.py figures.json --plots DIR      each plot as an SVG file

The Markdown document takes the standard library alone; plots take matplotlib.
"""

import argparse
import csv
import html
import io
import json
import re
import statistics
import sys
import textwrap
from pathlib import Path

import tables
from tables import number, ratio, short

TITLE = "The papers' tables and figures, repeated"
PAPERS = {"dvole": "Distributed Vector-OLE", "ferret": "Ferret", "kkrt": "BaRK-OPRF"}
# A column with one of these headings becomes the columns of a compact table.
PIVOTS = ("link", "items", "entries", "values")
SIDES = ("published", "here", "volery")
COLOURS = ("#3a7bd5", "#d9822b", "#2e9e6b", "#c0497a", "#8566c9", "#7a8a99")


def words(value, with_range=False, with_ratio=False):
    """A value in words."""
    kind = value["kind"]
    if kind == "none":
        return "-"
    if kind == "text":
        return value["text"]
    if kind == "published":
        return f"{value['value']:.12g}"
    if kind == "skipped":
        return f"> {short(value['seconds'])} s"
    if kind == "below":
        return f"< {short(value['bound'])}"
    text = short(number(value))
    spread = value.get("spread")
    if with_range and spread and spread["least"] < spread["most"]:
        text += f" ({short(spread['least'])}..{short(spread['most'])})"
    if with_ratio and ratio(value) is not None:
        text += f" ×{short(ratio(value))}"
    return text


def heading(column):
    return column["heading"] + (f" ({column['unit']})" if column["unit"] else "")


def ratios(section):
    """The median and the range of ours over published, by column and unit."""
    found = {}
    for table in section["tables"]:
        for row in table["rows"]:
            for column, value in zip(table["columns"], row):
                if ratio(value) is not None:
                    unit = column["unit"].split(" for ")[0]
                    found.setdefault((column["heading"], unit), []).append(ratio(value))
    return found


def summary(section):
    """One line of a section: its ratios, or its first finding where nothing can be divided."""
    parts = []
    for (name, unit), all_of in ratios(section).items():
        median, least, most = statistics.median(all_of), min(all_of), max(all_of)
        of = f" {unit}" if unit else ""
        span = f" ({short(least)}..{short(most)}, {len(all_of)} values)" if len(all_of) > 1 else ""
        parts.append(f"{name}{of} ×{short(median)}{span}")
    return "; ".join(parts) or (section["findings"] or ["-"])[0]


# Markdown ----------------------------------------------------------------------------------------


def grid(header, rows, right):
    """The lines of a table."""
    def escape(cell):
        return cell.replace("|", "\\|")
    lines = ["| " + " | ".join(map(escape, header)) + " |"]
    lines.append("|" + "|".join("--:" if is_right else "---" for is_right in right) + "|")
    lines += ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
    return lines


def compact(table):
    """A table with a column for each link or size: published / ours / ours, medians alone."""
    names = [column["heading"] for column in table["columns"]]
    pivot = next((names.index(name) for name in PIVOTS if name in names), None)
    labels = [i for i, column in enumerate(table["columns"]) if not column["numbers"] and i != pivot]
    numbers = [i for i in range(len(names)) if i not in labels and i != pivot]
    if set(SIDES) <= set(names):
        numbers = [names.index(name) for name in SIDES]
    if pivot is None or "published" not in names:
        rows = table["rows"]
        if len(rows) > 8 and pivot is not None:  # Some sizes of a figure: the first, the last, and between.
            sizes = list(dict.fromkeys(words(row[pivot]) for row in rows))
            some = {sizes[round(i * (len(sizes) - 1) / 3)] for i in range(4)}
            rows = [row for row in rows if words(row[pivot]) in some]
        cells = [[words(value, with_ratio=True) for value in row] for row in rows]
        right = [column["numbers"] for column in table["columns"]]
        return grid([heading(column) for column in table["columns"]], cells, right)
    places = list(dict.fromkeys(words(row[pivot]) for row in table["rows"]))
    lines = {}
    for row in table["rows"]:
        label = tuple(words(row[i]) for i in labels)
        cell = " / ".join(words(row[i]) for i in numbers)
        lines.setdefault(label, {})[words(row[pivot])] = re.sub(r"( / -)+$", "", cell)
    header = [names[i] for i in labels] + places
    cells = [[*label, *(cells.get(place, "-") for place in places)] for label, cells in lines.items()]
    return grid(header, cells, [False] * len(labels) + [True] * len(places))


def shown(section):
    """The tables that the document has: measured ones with published values beside them by link or
    size, if there are any; else those with ratios; else times."""
    tables = section["tables"]

    def has(table, of):
        return any(of(value) for row in table["rows"] for value in row)

    beside = [table for table in tables if has(table, lambda value: ratio(value) is not None)]
    wide = [table for table in beside if {c["heading"] for c in table["columns"]}.issuperset(SIDES)
            and any(c["heading"] in PIVOTS for c in table["columns"])]
    if wide:
        return [table for table in wide if has(table, lambda value: value["kind"] == "measured")]
    return beside or [table for table in tables if table["caption"].startswith("Time")]


def wrapped(lines):
    """Prose in at most 100 columns; rows of tables stay whole."""
    for line in lines:
        if len(line) > 100 and not line.startswith("|"):
            yield from textwrap.wrap(line, 100, break_long_words=False, break_on_hyphens=False)
        else:
            yield line


def markdown(results):
    sections = results["sections"]
    lines = [f"# {TITLE}", ""]
    for paragraph in [
        "One line for each table and figure of the three papers: the median of ours over the published "
        "value, its range, and of how many values; below 1, ours takes or sends less. `here` is the "
        "paper's own protocol as this project has it, `volery` this project's default.",
        "[lab/README.md](lab/README.md) says how to repeat it, and how to make the page with every "
        "table, plot, range, difference and finding.",
    ]:
        lines += [*textwrap.wrap(paragraph, 100), ""]
    rows = []
    for section in sections:
        paper = PAPERS.get(section["name"].split("-")[0], "")
        title = section["title"].replace(f" of {paper}", "")
        where, _, what = title.partition(": ")
        rows.append([paper, where, what, summary(section)])
    lines += grid(["paper", "", "what", "ours over published"], rows, [False] * 4)
    lines += ["", "## Measured on", ""]
    for paragraph in results["intro"]:
        lines += [*textwrap.wrap(paragraph, 100), ""]
    lines += ["## Tables", ""]
    lines += textwrap.wrap(
        "Published / here / volery, medians; `>` marks what was left out as too long, `<` a difference "
        "lost in the spread of its terms, ×r a value over the published one.", 100)
    for section in sections:
        paper = PAPERS.get(section["name"].split("-")[0], "")
        for table in shown(section):
            units = {c["unit"] for c in table["columns"] if c["unit"]}
            unit = units.pop() if len(units) == 1 else ""
            caption = table["caption"] + (f", {unit}" if unit and unit not in table["caption"] else "")
            where = re.match(r"(Figure|Table) \d+", section["title"])[0]
            caption = caption.removeprefix(f"{where}: ")
            lines += ["", f"**{paper}, {where}**: {caption}", "", *compact(table)]
    return "\n".join(wrapped(lines)) + "\n"


def choices(results):
    """The tables of `volery-bench grid`, one a link."""
    header, links, sentence = tables.choices(results)
    right = [heading not in ("auto", "fastest") for heading in header]
    parts = [[f"**{link}**", "", *grid(header, rows, right), ""] for link, rows in links.items()]
    return "\n".join([line for part in parts for line in part] + textwrap.wrap(sentence, 100)) + "\n"


# Plots -------------------------------------------------------------------------------------------


def base_name(name):
    """A published line and ours of the same name have the same colour."""
    return re.split(r", (?!.*, )| \((?!.* \()", name)[0]


def svg(plot, themed=True):
    """A plot as SVG; text and axes in the colour of the page if `themed`."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "volery"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.4, 4.2), layout="constrained")
    for axis, of in ((axes.xaxis, plot["x"]), (axes.yaxis, plot["y"])):
        set_scale = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
        if of["scale"] != "linear":
            set_scale("log", base=2 if of["scale"] == "log2" else 10)
        axis.set_label_text(heading({"heading": of["label"], "unit": of["unit"]}))
    colours = {}
    for series in plot["series"]:
        colour = colours.setdefault(base_name(series["name"]), COLOURS[len(colours) % len(COLOURS)])
        points = series["points"]
        xs, ys = [p["x"] for p in points], [p["y"]["median"] for p in points]
        spread = [[max(0.0, sign * (p["y"][end] - p["y"]["median"])) for p in points]
                  for sign, end in ((-1, "least"), (1, "most"))]
        axes.errorbar(xs, ys, yerr=spread, label=series["name"], color=colour, marker="o", markersize=3,
                      linewidth=1.2, capsize=2, linestyle="--" if series["published"] else "-")
    axes.set_title(plot["title"], fontsize=10)
    axes.grid(alpha=0.25)
    if plot["series"]:
        axes.legend(fontsize=7, framealpha=0)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg"):]
    if themed:
        drawn = re.sub(r"#000000\b", "currentColor", drawn)
        # Text without a colour of its own is black.
        drawn = drawn.replace("<svg ", '<svg fill="currentColor" ', 1)
    return drawn


# The page ----------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: light-dark(#1c1f23, #d9dde2); background: light-dark(#fff, #15181c); }
table { border-collapse: collapse; margin: .6rem 0 1rem; font-size: 13px; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid light-dark(#e2e5e9, #30353c); text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; } small { opacity: .7; } a { color: inherit; } svg { max-width: 100%; height: auto; }
"""


def page(results):
    escape = html.escape
    out = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(TITLE)}</title>",
           "<meta name=viewport content='width=device-width'>", f"<style>{STYLE}</style><h1>{escape(TITLE)}</h1>"]
    out += [f"<p>{escape(text)}</p>" for text in results["intro"]]
    sections = results["sections"]
    out.append("<ul>")
    out += [f"<li><a href='#{s['name']}'>{escape(s['title'])}</a> <small>{escape(summary(s))}</small>" for s in sections]
    out.append("</ul>")

    def listed(title, texts):
        if texts:
            out.append(f"<h4>{title}</h4><ul>" + "".join(f"<li>{escape(text)}" for text in texts) + "</ul>")

    for section in sections:
        out.append(f"<h2 id='{section['name']}'>{escape(section['title'])}</h2>")
        out += [f"<p>{escape(section[part])}</p>" for part in ("source", "note") if section[part]]
        listed("What came out", section["findings"])
        out += [svg(plot) for plot in section["plots"]]
        for table in section["tables"]:
            out.append(f"<h4>{escape(table['caption'])}</h4><div class=scroll><table><tr>")
            out += [f"<th>{escape(heading(column))}" for column in table["columns"]]
            for row in table["rows"]:
                out.append("<tr>")
                out += ["<td" + (" class=n>" if column["numbers"] else ">")
                        + escape(words(value, with_range=True, with_ratio=True))
                        for column, value in zip(table["columns"], row)]
            out.append("</table></div>")
            listed("Notes", table["notes"])
        listed("Measured there", [section["there"]] if section["there"] else [])
        listed("Measured here", section["ours"])
        listed("Differences", section["differences"])
    out += ["<h2>All measurements</h2><div class=scroll><table><tr><th>protocol<th>n<th>link<th>threads",
            "<th>runs<th>seconds<th>bytes<th>messages<th>parameters"]
    for one in results["measurements"]:
        key, samples = one["key"], one["samples"]
        def median(of):
            totals = [sum(phase[of] for phase in sample["phases"]) for sample in samples]
            return short(statistics.median(totals)) if totals else "-"
        cells = [key["protocol"], key["n"], key["link"], key["threads"], len(samples),
                 median("seconds"), median("bytes"), median("messages"), one["plan"] or "-"]
        out.append("<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in cells))
    out.append("</table></div>")
    return "\n".join(out) + "\n"


def figures(results, file):
    """Every number of every table, one a line."""
    writer = csv.writer(file)
    writer.writerow(["section", "table", "row", "column", "unit", "kind", "value", "least", "most", "runs", "published"])
    for section in results["sections"]:
        for table in section["tables"]:
            for row in table["rows"]:
                pairs = list(zip(table["columns"], row))
                label = ", ".join(words(value) for column, value in pairs if value["kind"] == "text")
                for column, value in pairs:
                    if number(value) is not None:
                        spread = value.get("spread") or {}
                        writer.writerow([section["name"], table["caption"], label, column["heading"], column["unit"],
                                         value["kind"], number(value), spread.get("least"), spread.get("most"),
                                         spread.get("count"), value.get("published")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--markdown", type=Path, help="write the document here")
    parser.add_argument("--out", type=Path, help="write index.html and results.csv into this folder")
    parser.add_argument("--plots", type=Path, help="write the plots into this folder, as NAME.svg")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    more = results.get("more", {})
    if "spots" in more:
        if options.markdown or options.out or options.plots:
            sys.exit(f"error: {options.results}: has a grid, which is shown only: leave out --markdown, --out and --plots")
        sys.stdout.write(choices(results))
        return
    if results.get("format") != "volery measurements" or "lines" not in more:
        sys.exit(f"error: {options.results}: has no tables: 'volery-bench paper' and 'grid' write such files; "
                 "'paper --draw' adds those of an older one")
    results |= {"sections": tables.sections(results), "intro": tables.intro(results)}
    if not (options.markdown or options.out or options.plots):
        sys.stdout.write(markdown(results))
    if options.markdown:
        options.markdown.write_text(markdown(results))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "index.html").write_text(page(results))
        with (options.out / "results.csv").open("w", newline="") as file:
            figures(results, file)
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        for section in results["sections"]:
            many = len(section["plots"]) > 1
            for count, plot in enumerate(section["plots"], 1):
                name = section["name"] + (f"-{count}" if many else "")
                (options.plots / f"{name}.svg").write_text(svg(plot, themed=False))


if __name__ == "__main__":
    main()
