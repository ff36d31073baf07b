//! Markdown, as GitHub shows it; it can be read as plain text too.

use super::value::{Words, signs};
use super::{Section, Table, plot_name};

/// Before a ratio.
const TIMES: &str = "×";

/// A document with all sections. `intro` says what was measured on, a paragraph each; the picture of a plot is expected in
/// the folder `plots_at`, seen from the document, by the name that [`plot_name`] gives it.
#[must_use]
pub fn document(title: &str, intro: &[String], sections: &[Section], plots_at: &str) -> String {
    let mut blocks = vec![format!("# {}", escape(title))];
    blocks.extend(intro.iter().map(|paragraph| escape(paragraph)));
    if sections.len() > 1 {
        let lines = sections.iter().map(|section| {
            let heading = escape(&section.title);
            format!("- [{heading}](#{})", anchor(&section.title))
        });
        blocks.push(lines.collect::<Vec<_>>().join("\n"));
    }
    blocks.extend(key(sections));
    for section in sections {
        add_section(section, plots_at, &mut blocks);
    }
    blocks.join("\n\n") + "\n"
}

/// What the signs in the tables mean.
fn key(sections: &[Section]) -> Option<String> {
    let signs = signs(sections.iter().flat_map(|section| &section.tables), TIMES);
    let lines: Vec<_> = signs
        .iter()
        .map(|(sign, meaning)| format!("- `{sign}`: {meaning}"))
        .collect();
    (!lines.is_empty()).then(|| format!("Signs in the tables:\n\n{}", lines.join("\n")))
}

fn add_section(section: &Section, plots_at: &str, blocks: &mut Vec<String>) {
    blocks.push(format!("## {}", escape(&section.title)));
    for line in [&section.source, &section.note] {
        if !line.is_empty() {
            blocks.push(escape(line));
        }
    }
    add_list(&section.findings, blocks);
    for (plot, number) in section.plots.iter().zip(1..) {
        let title = escape(&plot.title);
        let at = path(plots_at, &plot_name(section, number));
        blocks.push(format!("**{title}**"));
        blocks.push(format!("![{title}]({at})"));
    }
    for table in &section.tables {
        if !table.caption.is_empty() {
            blocks.push(format!("**{}**", escape(&table.caption)));
        }
        blocks.push(of_table(table));
        blocks.extend(table.notes.iter().map(|note| escape(note)));
    }
    if !section.there.is_empty() {
        blocks.push("### What the paper measured on".to_owned());
        blocks.push(escape(&section.there));
    }
    for (heading, list) in [
        ("What is measured here", &section.ours),
        ("Differences", &section.differences),
    ] {
        if !list.is_empty() {
            blocks.push(format!("### {heading}"));
            add_list(list, blocks);
        }
    }
}

fn add_list(list: &[String], blocks: &mut Vec<String>) {
    if !list.is_empty() {
        let items = list.iter().map(|item| format!("- {}", escape(item)));
        blocks.push(items.collect::<Vec<_>>().join("\n"));
    }
}

/// A table whose columns line up in plain text too.
fn of_table(table: &Table) -> String {
    let headings = table.columns.iter().map(|column| {
        let heading = escape(&column.heading);
        if column.unit.is_empty() {
            heading
        } else {
            format!("{heading} ({})", escape(&column.unit))
        }
    });
    let mut rows = vec![headings.collect::<Vec<_>>()];
    let widths: Vec<_> = (0..table.columns.len())
        .map(|column| Widths::of(table, column))
        .collect();
    rows.extend(table.rows.iter().map(|row| {
        let cells = row.iter().zip(&table.columns).zip(&widths);
        cells
            .map(|((value, column), widths)| {
                let words = Words::of(value);
                if column.numbers {
                    widths.lay_out(&words)
                } else {
                    escape_in_cell(&words.on_one_line(TIMES))
                }
            })
            .collect()
    }));
    let columns = table.columns.iter().enumerate().map(|(index, column)| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let wide = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        (wide.max(3), column.numbers)
    });
    let columns: Vec<_> = columns.collect();
    let rule = columns.iter().map(|&(wide, right)| {
        let dashes = "-".repeat(wide - 1);
        if right {
            dashes + ":"
        } else {
            format!(":{dashes}")
        }
    });
    rows.insert(1, rule.collect());
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&columns).map(|(cell, &(wide, right))| {
            if right {
                format!("{cell:>wide$}")
            } else {
                format!("{cell:<wide$}")
            }
        });
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What the values of a column take in plain text: the medians, the ranges and the ratios, each with the blank before it.
#[derive(Default)]
struct Widths([usize; 3]);

impl Widths {
    fn of(table: &Table, column: usize) -> Self {
        let values = table.rows.iter().filter_map(|row| row.get(column));
        values.fold(Self::default(), |Self(widest), value| {
            let parts = parts(&Words::of(value));
            Self(std::array::from_fn(|part| {
                widest[part].max(parts[part].chars().count())
            }))
        })
    }

    /// Medians below medians, ratios below ratios.
    fn lay_out(&self, words: &Words) -> String {
        let Self([value, range, ratio]) = *self;
        let parts = parts(words);
        format!(
            "{:>value$}{:<range$}{:>ratio$}",
            parts[0], parts[1], parts[2]
        )
    }
}

/// The value, the range and the ratio, the last two with a blank before them.
fn parts(words: &Words) -> [String; 3] {
    let range = words.range.as_ref();
    let ratio = words.ratio.as_ref();
    [
        escape_in_cell(&words.value),
        range.map_or_else(String::new, |(least, most)| format!(" ({least}..{most})")),
        ratio.map_or_else(String::new, |ratio| format!(" {TIMES}{ratio}")),
    ]
}

/// A number with its signs stands as it is: `~12.3`, `> 123 s`.
fn escape_in_cell(words: &str) -> String {
    let words = &words.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = words.trim_start_matches(['~', '>', '†', '-', ' ']);
    let (signs, rest) = words.split_at(words.len() - number.len());
    if rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{signs}{}", escape_inside(rest))
    } else {
        escape_inside(words)
    }
}

/// Text that stands for itself as a paragraph or in a list: also its beginning makes no heading, list or quotation.
fn escape(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let inside = escape_inside(&text);
    if inside.starts_with(['#', '+', '-', '>', '=']) {
        return format!("\\{inside}");
    }
    let digits = inside.chars().take_while(char::is_ascii_digit).count();
    match inside[digits..].chars().next() {
        Some('.' | ')') if digits > 0 => format!("{}\\{}", &inside[..digits], &inside[digits..]),
        _ => inside,
    }
}

/// Text that stands for itself behind the beginning of a line.
fn escape_inside(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = ' ';
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let after = rest.clone().next().unwrap_or(' ');
        let special = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '$' | '~' => true,
            // Between letters it makes nothing, and names are easier to read without.
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '&' => after.is_alphanumeric() || after == '#',
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(character);
        before = character;
    }
    escaped
}

/// What GitHub calls the place of a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// Of a file in a folder, as the target of a link.
fn path(folder: &str, name: &str) -> String {
    let path = match folder.trim_end_matches('/') {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    };
    if path.contains([' ', '(', ')']) {
        format!("<{path}>")
    } else {
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::samples;

    fn sample() -> String {
        let intro = ["2 cores".to_owned(), "# not a heading".to_owned()];
        let sections = [samples::section(), samples::links()];
        document("All | more", &intro, &sections, "docs/plots/")
    }

    #[test]
    fn a_table_lines_up_in_plain_text() {
        let table = of_table(&samples::section().tables[0]);
        let expected = r#"
| what | what        |                            time (ms) |
| :--- | :---------- | -----------------------------------: |
| r1   | long, "row" |                 -                    |
| r2   | long, "row" | a \<b> & "c" \| d                    |
| r3   | long, "row" |              0.73                    |
| r4   | long, "row" |             †12.3                    |
| r5   | long, "row" |              12.3 (10.0..14.0) ×0.95 |
"#;
        let expected: Vec<_> = expected.trim().lines().collect();
        let lines: Vec<_> = table.lines().take(expected.len()).collect();
        assert_eq!(lines, expected, "{table}");
        let wide = table.lines().map(|line| line.chars().count());
        assert!(
            wide.clone()
                .all(|of_line| wide.clone().max() == Some(of_line))
        );
    }

    #[test]
    fn every_kind_of_value() {
        let table = of_table(&samples::section().tables[0]);
        let cells: Vec<_> = table
            .lines()
            .skip(2)
            .filter_map(|line| line.trim_end_matches(" |").rsplit("| ").next())
            .map(str::trim)
            .collect();
        assert_eq!(
            cells,
            [
                "-",
                "d",
                "0.73",
                "†12.3",
                "12.3 (10.0..14.0) ×0.95",
                "~12.3",
                "1000              ×1.25",
                "> 123 s",
                "\\< 12.3",
            ]
        );
    }

    #[test]
    fn all_is_in_it() {
        let text = sample();
        for part in [
            "# All \\| more\n\n2 cores\n\n\\# not a heading\n\n- [",
            "](#table-3-of-paper-a-b--c--d)\n",
            "- `> 123 s`: not measured",
            "\n## Table 3 of Paper: a \\<b> & \"c\" \\| d\n\nSomebody: Paper\n\nDigits as printed.\n\n- a finding\n\n",
            "**time \\<&\"> of both**\n\n![time \\<&\"> of both](docs/plots/paper-table-3-1.svg)\n\n",
            "**first \\| caption**\n\n| what",
            "\n\na note\n\n### What the paper measured on\n\ntwo machines\n\n",
            "### What is measured here\n\n- one machine\n\n### Differences\n\n- one machine, not two\n",
        ] {
            assert!(text.contains(part), "{part}\n---\n{text}");
        }
        assert_eq!(text, sample());
        assert!(text.ends_with("|\n") && !text.contains("\n\n\n"));
    }

    #[test]
    fn text_stands_for_itself() {
        for (text, escaped) in [
            ("a_b_c _d_", "a_b_c \\_d\\_"),
            ("[BCG+19a] *x* `y`", "\\[BCG+19a\\] \\*x\\* \\`y\\`"),
            ("a & b &amp; &#1;", "a & b \\&amp; \\&#1;"),
            ("- a", "\\- a"),
            ("1. a", "1\\. a"),
            ("12 a", "12 a"),
            ("~~a~~ $1$ \\", "\\~\\~a\\~\\~ \\$1\\$ \\\\"),
            ("a\n\n# b", "a # b"),
        ] {
            assert_eq!(escape(text), escaped);
        }
        assert_eq!(escape_in_cell("a\nb"), "a b");
        assert_eq!(escape_in_cell("~12.3"), "~12.3");
        assert_eq!(escape_in_cell("~a~"), "\\~a\\~");
        assert_eq!(escape_in_cell("-"), "-");
    }

    #[test]
    fn paths_of_pictures() {
        assert_eq!(path("", "a.svg"), "a.svg");
        assert_eq!(path("b/", "a.svg"), "b/a.svg");
        assert_eq!(path("b c", "a.svg"), "<b c/a.svg>");
    }
}
