//! Charts: the text of each is HTML, which every screen size and reader can use; only the shapes
//! are SVG.

use super::markup::{Markup, element};
use super::words::{count, things};

/// A bar with its texts.
pub(crate) struct Bar {
    name: String,
    values: [String; 2],
    span: [f64; 2],
}

impl Bar {
    /// A bar from `span[0]` to `span[1]`, in the unit of the whole axis.
    pub(crate) fn new(name: String, values: [String; 2], span: [f64; 2]) -> Self {
        Self { name, values, span }
    }
}

/// A rectangle; all numbers are parts of the width and the height.
fn rectangle(class: &'static str, x: f64, width: f64, y: f64, height: f64) -> Markup {
    let [x, width, y, height] = [x, width, y, height].map(|part| format!("{:.2}%", 100.0 * part));
    element(
        "rect",
        &[("class", class), ("x", &*x), ("width", &*width), ("y", &*y), ("height", &*height)],
        "",
    )
}

/// A part of the whole, from 0 to 1.
fn part(value: f64, whole: f64) -> f64 {
    if whole > 0.0 { (value / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// A table with a bar in each row, on an axis from 0 to `whole`.
pub(crate) fn bars(caption: &str, headings: [&str; 3], rows: &[Bar], whole: f64) -> Markup {
    let head = headings.into_iter().enumerate().map(|(index, heading)| {
        let class = if index == 0 { "" } else { "number" };
        element("th", &[("scope", "col"), ("class", class)], heading)
    });
    // The bar repeats the numbers beside it.
    let bar_heading = element("td", &[], "");
    let head: Markup = head.chain([bar_heading]).collect();
    let body = rows.iter().map(|bar| {
        let [from, to] = bar.span.map(|end| part(end, whole));
        // What is there stays visible, however short.
        let width = if to > from { (to - from).max(0.004) } else { 0.0 };
        let shapes = [
            element("title", &[], format!("{}: {}", bar.name, bar.values.join(", "))),
            rectangle("track", 0.0, 1.0, 0.0, 1.0),
            rectangle("own", from.min(1.0 - width), width, 0.0, 1.0),
        ];
        let svg = element("svg", &[("role", "img")], shapes);
        let [first, second] = bar.values.each_ref();
        element(
            "tr",
            &[],
            [
                element("th", &[("scope", "row")], bar.name.as_str()),
                element("td", &[("class", "number")], first.as_str()),
                element("td", &[("class", "number")], second.as_str()),
                element("td", &[("class", "bar")], svg),
            ],
        )
    });
    element(
        "table",
        &[("class", "chart")],
        [
            element("caption", &[], caption),
            element("thead", &[], element("tr", &[], head)),
            element("tbody", &[], body.collect::<Markup>()),
        ],
    )
}

/// The two sets as bars on one axis, which overlap by the common keys where these are known.
pub(crate) fn sets(own: u64, peer: u64, common: Option<u64>) -> Markup {
    let shared = common.unwrap_or_default().min(own).min(peer);
    let whole = (own as f64 + peer as f64 - shared as f64).max(1.0);
    // Without a known overlap both begin at the same point: the lengths are all that is compared.
    let (whole, begin) = match common {
        Some(_) => (whole, part((own - shared) as f64, whole)),
        None => (own.max(peer).max(1) as f64, 0.0),
    };
    let width = |size: u64| part(size as f64, whole);
    let summary = match common {
        Some(common) => format!(
            "This side has {}, the peer {}, and {} in both.",
            things(own, "key"),
            count(peer),
            things(common, "key")
        ),
        None => format!("This side has {}, the peer {}.", things(own, "key"), count(peer)),
    };
    let mut shapes =
        vec![element("title", &[], "Sizes of the two sets"), element("desc", &[], summary)];
    if shared > 0 {
        shapes.push(rectangle("band", begin, width(shared), 0.0, 1.0));
    }
    shapes.push(rectangle("own", 0.0, width(own), 0.08, 0.36));
    shapes.push(rectangle("peer", begin, width(peer), 0.56, 0.36));
    if shared > 0 {
        for x in [begin, begin + width(shared)] {
            let x = format!("{:.2}%", 100.0 * x);
            let line = [("class", "edge"), ("x1", &*x), ("x2", &*x), ("y1", "0"), ("y2", "100%")];
            shapes.push(element("line", &line, ""));
        }
    }
    let entry = |class, line: String| {
        let mark = element("svg", &[("aria-hidden", "true")], rectangle(class, 0.0, 1.0, 0.0, 1.0));
        element("li", &[], [mark, line.into()])
    };
    let mut key = vec![
        entry("own", format!("this side, upper bar: {}", things(own, "key"))),
        entry("peer", format!("peer, lower bar: {}", things(peer, "key"))),
    ];
    if let Some(common) = common {
        key.push(entry("band", format!("both, where the bars overlap: {}", things(common, "key"))));
    }
    element(
        "div",
        &[("class", "sets")],
        [
            element("svg", &[("role", "img")], shapes.into_iter().collect::<Markup>()),
            element("ul", &[("class", "key")], key.into_iter().collect::<Markup>()),
        ],
    )
}
