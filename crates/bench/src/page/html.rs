//! One page that needs nothing else: no network, no scripts, no fonts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::value::{Words, grouped, signs};
use super::{Column, Plot, Section, Table, Value, svg};

/// How it looks.
const STYLE: &str = include_str!("style.css");

/// Before a ratio.
const TIMES: &str = "×";

/// Words of so many letters stay on one line in a table.
const SHORT: usize = 24;

/// A page with all sections, for screens of any width and for paper. `intro` says what was measured on, a paragraph each.
#[must_use]
pub fn page(title: &str, intro: &[String], sections: &[Section]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    @for paragraph in intro { p { (paragraph) } }
                }
                (contents(sections))
                (key(sections))
                main { @for section in sections { (of_section(section)) } }
            }
        }
    };
    page.into_string()
}

fn contents(sections: &[Section]) -> Markup {
    html! {
        @if sections.len() > 1 {
            nav aria-labelledby="contents" {
                h2 #contents { "Contents" }
                ol {
                    @for section in sections {
                        li { a href={ "#" (section.name) } { (section.title) } }
                    }
                }
            }
        }
    }
}

/// What the signs in the tables mean.
fn key(sections: &[Section]) -> Markup {
    let signs = signs(sections.iter().flat_map(|section| &section.tables), TIMES);
    html! {
        @if !signs.is_empty() {
            aside aria-labelledby="signs" {
                h2 #signs { "Signs in the tables" }
                dl {
                    @for (sign, meaning) in signs {
                        div { dt { (sign) } dd { (meaning) } }
                    }
                }
            }
        }
    }
}

fn of_section(section: &Section) -> Markup {
    html! {
        section #(section.name) {
            h2 { (section.title) }
            @for line in [&section.source, &section.note] {
                @if !line.is_empty() { p.source { (line) } }
            }
            @if !section.findings.is_empty() {
                ul.findings { @for finding in &section.findings { li { (finding) } } }
            }
            @for plot in &section.plots { (of_plot(plot)) }
            @for table in &section.tables { (of_table(table)) }
            (conditions(section))
        }
    }
}

fn of_plot(plot: &Plot) -> Markup {
    html! {
        figure.plot {
            figcaption { (plot.title) }
            (PreEscaped(svg::plot(plot)))
        }
    }
}

/// What both were measured on, and in what they differ.
fn conditions(section: &Section) -> Markup {
    let lists = [
        ("What is measured here", &section.ours),
        ("Differences", &section.differences),
    ];
    let nothing = section.there.is_empty() && lists.iter().all(|(_, list)| list.is_empty());
    html! {
        @if !nothing {
            details {
                summary { "How it was measured, there and here" }
                @if !section.there.is_empty() {
                    h3 { "What the paper measured on" }
                    p { (section.there) }
                }
                @for (heading, list) in lists {
                    @if !list.is_empty() {
                        h3 { (heading) }
                        ul { @for item in list { li { (item) } } }
                    }
                }
            }
        }
    }
}

fn of_table(table: &Table) -> Markup {
    let in_groups = is_grouped(table);
    let ratios: Vec<_> = (0..table.columns.len())
        .map(|column| widest_ratio(table, column))
        .collect();
    let begins = |row: usize| {
        let above = row.checked_sub(1).map(|above| &table.rows[above]);
        in_groups && above.is_none_or(|above| above.first() != table.rows[row].first())
    };
    html! {
        figure.table {
            figcaption { (table.caption) }
            div.scroll tabindex="0" role="region" aria-label=(table.caption) {
                table {
                    thead { tr { @for column in &table.columns { (heading(column)) } } }
                    tbody {
                        @for (index, row) in table.rows.iter().enumerate() {
                            tr class=[begins(index).then_some("first")] {
                                @for (index, (column, value)) in table.columns.iter().zip(row).enumerate() {
                                    (cell(column, value, index == 0, ratios[index]))
                                }
                            }
                        }
                    }
                }
            }
            @for note in &table.notes { p.note { (note) } }
        }
    }
}

/// Whether rows that begin with the same words follow each other.
fn is_grouped(table: &Table) -> bool {
    let mut pairs = table.rows.windows(2);
    pairs
        .any(|rows| matches!(rows[0].first(), Some(Value::Text { .. })) && rows[0][0] == rows[1][0])
}

fn heading(column: &Column) -> Markup {
    html! {
        th.number[column.numbers] scope="col" {
            (column.heading)
            @if !column.unit.is_empty() { " " small { (column.unit) } }
        }
    }
}

/// A cell; `ratio` letters are kept free for a ratio, so that the values above each other line up.
fn cell(column: &Column, value: &Value, first: bool, ratio: usize) -> Markup {
    let words = Words::of(value);
    let kind = match value {
        Value::Text { text } => {
            let class = if text.chars().count() <= SHORT {
                "short"
            } else {
                "long"
            };
            return html! {
                @if first { th.(class) scope="row" { (text) } }
                @else { td.(class).number[column.numbers] { (text) } }
            };
        }
        Value::Published { .. } => "published",
        Value::Measured { .. } | Value::Below { .. } => "measured",
        Value::Computed { .. } => "computed",
        Value::Skipped { .. } => "skipped",
        Value::None => "none",
    };
    html! {
        td.(kind).number[column.numbers] {
            (grouped(&words.value))
            @if ratio > 0 {
                " " small.ratio style={ "min-width:" (ratio) "ch" } {
                    @if let Some(ratio) = words.ratio { (TIMES) (ratio) }
                }
            }
            @if let Some((least, most)) = words.range {
                " " small.range { (grouped(&least)) ".." (grouped(&most)) }
            }
        }
    }
}

/// The letters of the longest ratio in a column, what stands before it included; zero if there is none.
fn widest_ratio(table: &Table, column: usize) -> usize {
    let values = table.rows.iter().filter_map(|row| row.get(column));
    let ratios = values.filter_map(|value| Words::of(value).ratio);
    ratios.map(|ratio| ratio.len() + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::samples;

    fn sample() -> String {
        let intro = ["2 cores <&>".to_owned()];
        page(
            "All & \"more\"",
            &intro,
            &[samples::section(), samples::links()],
        )
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = sample();
        let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
        for outside in [
            "http:", "https:", "//", "<script", "@import", "url(", "<link", "<img",
        ] {
            assert!(!without_namespace.contains(outside), "{outside}");
        }
        assert!(page.contains(r#"<meta name="viewport""#));
        assert_eq!(page.matches("<svg").count(), 1);
    }

    #[test]
    fn all_is_in_it_and_escaped() {
        let page = sample();
        for part in [
            "<h1>All &amp; &quot;more&quot;</h1>",
            "<p>2 cores &lt;&amp;&gt;</p>",
            r##"<a href="#paper-table-3">"##,
            r#"<section id="paper-table-3">"#,
            "Table 3 of Paper: a &lt;b&gt; &amp; &quot;c&quot; | d",
            "Somebody: Paper",
            "Digits as printed.",
            "<li>a finding</li>",
            "first | caption",
            "a note",
            "two machines",
            "<li>one machine</li>",
            "<li>one machine, not two</li>",
            "<small>ms</small>",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let raw = page.match_indices(samples::AWKWARD).count();
        assert_eq!(raw, 0, "not without escapes");
    }

    #[test]
    fn every_kind_of_value() {
        let page = sample();
        for cell in [
            r#"<td class="none number">- <small class="ratio" style="min-width:5ch"></small></td>"#,
            r#"<td class="published number">0.73 <small class="ratio" style="min-width:5ch"></small></td>"#,
            r#"<td class="published number">†12.3 <small class="ratio" style="min-width:5ch"></small></td>"#,
            r#"<td class="measured number">12.3 <small class="ratio" style="min-width:5ch">×0.95</small> <small class="range">10.0..14.0</small></td>"#,
            r#"<td class="measured number">~12.3 <small class="ratio" style="min-width:5ch"></small></td>"#,
            r#"<td class="computed number">1000 <small class="ratio" style="min-width:5ch">×1.25</small></td>"#,
            r#"<td class="skipped number">&gt; 123 s <small class="ratio" style="min-width:5ch"></small></td>"#,
            r#"<th class="short" scope="row">r1</th>"#,
        ] {
            assert!(page.contains(cell), "{cell}");
        }
        assert_eq!(page.matches("not measured: a run").count(), 1);
    }

    #[test]
    fn findings_come_first_and_conditions_last() {
        let page = page("All", &[], &[samples::section()]);
        let main = page.split_once("<main>").expect("there is one").1;
        let places = ["a finding", "<svg", "<table", "<details"].map(|part| main.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted());
        assert!(!page.contains("<nav"), "one section needs no contents");
    }

    #[test]
    fn groups_of_rows_are_marked() {
        let page = page("All", &[], &[samples::links()]);
        assert_eq!(page.matches("<tr class=\"first\">").count(), 8);
    }

    #[test]
    fn equal_sections_make_equal_pages_and_none_a_page() {
        assert_eq!(sample(), sample());
        let empty = page("Nothing", &[], &[]);
        assert!(empty.contains("<main></main>") && empty.ends_with("</html>"));
        let table = Table {
            rows: vec![vec![], vec![]],
            ..Table::default()
        };
        let section = Section {
            tables: vec![table],
            ..Section::default()
        };
        assert!(page("Empty", &[], &[section]).contains("<tbody><tr></tr><tr></tr></tbody>"));
    }
}
