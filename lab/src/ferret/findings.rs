//! Findings: sentences generated from the figures.

use crate::measurement::Spread;
use crate::page::Value;

use super::candidate::Candidate;
use super::published::{Published, Rate};
use super::tables::Line;
use crate::words::{Standing, few_runs, range};

/// A measured time over one link, with the published one.
#[derive(Clone, Copy, Debug)]
struct Figure {
    rate: Rate,
    spread: Spread,
    published: f64,
    /// Fewer outputs were made than the time is for.
    scaled: bool,
}

/// One sentence for each row of the paper and each protocol of ours with figures for it; none where
/// nothing was measured, and none for figures that the paper gives only approximately.
pub(super) fn sentences(published: &Published, lines: &[Line]) -> Vec<String> {
    let mut all = Vec::new();
    for line in lines.iter().filter(|line| !line.row.about) {
        for (place, candidate) in line.beside.iter().enumerate() {
            all.extend(candidate.and_then(|candidate| sentence(published, line, place, candidate)));
        }
    }
    all
}

fn sentence(
    published: &Published,
    line: &Line,
    place: usize,
    candidate: Candidate,
) -> Option<String> {
    let figures = line.times.iter().filter_map(|times| {
        let ours = &times.ours[place];
        Some(Figure {
            rate: times.rate,
            spread: ours.plotted()?,
            published: times.published,
            scaled: matches!(
                ours,
                Value::Measured {
                    extrapolated: true,
                    ..
                }
            ),
        })
    });
    let figures: Vec<_> = figures.collect();
    let time = time(&figures)?;
    let whose = match candidate {
        Candidate::Ferret(..) => "here",
        Candidate::Volery(..) => "volery",
        Candidate::Iknp | Candidate::SoftSpoken => candidate.title(),
    };
    let traffic = traffic(published, &line.traffic[place]).unwrap_or_default();
    let runs = few_runs(figures.iter().map(|figure| figure.spread));
    Some(format!(
        "{}, {}, {whose}: {time}{traffic}{runs}.",
        line.row.name(),
        line.row.security()
    ))
}

/// `0.83 to 2.3 times the published time over 6 links: faster over 10Mbit; slower over 50Mbit,
/// ...`, and the links over which it is lost in the spread (the difference of two times can be), or
/// scaled. `None` for no figures.
fn time(figures: &[Figure]) -> Option<String> {
    let is_told = |figure: &Figure| figure.spread.least > 0.0;
    let (told, lost): (Vec<_>, Vec<_>) = figures.iter().copied().partition(is_told);
    let scaled: Vec<_> = figures.iter().copied().filter(|is| is.scaled).collect();
    let mut words = Vec::new();
    words.extend(compared(&told));
    if !lost.is_empty() {
        words.push(format!("lost in the spread over {}", links(&lost)));
    }
    if !scaled.is_empty() {
        let part = over(&scaled, figures.len());
        words.push(format!("scaled from fewer COTs{part}"));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// About figures that are lost in the spread.
fn compared(told: &[Figure]) -> Option<String> {
    let range = range(told.iter().map(|is| is.spread.median / is.published))?;
    let links = match told {
        [one] => one.rate.name().to_owned(),
        _ => format!("{} links", told.len()),
    };
    let kinds = [
        ("faster", Standing::Less),
        ("about the same", Standing::Same),
        ("slower", Standing::More),
    ];
    let words = kinds.iter().filter_map(|(word, kind)| {
        let standing = |is: &Figure| Standing::to_published(is.spread, is.published);
        let some: Vec<_> = told
            .iter()
            .copied()
            .filter(|is| standing(is) == *kind)
            .collect();
        (!some.is_empty()).then(|| format!("{word}{}", over(&some, told.len())))
    });
    let words: Vec<_> = words.collect();
    Some(format!(
        "{range} times the published time over {links}: {}",
        words.join("; ")
    ))
}

/// ` over 10Mbit, 50Mbit`, or an empty text for all links.
fn over(some: &[Figure], all: usize) -> String {
    if some.len() == all {
        String::new()
    } else {
        format!(" over {}", links(some))
    }
}

fn links(figures: &[Figure]) -> String {
    let names: Vec<_> = figures.iter().map(|is| is.rate.name()).collect();
    names.join(", ")
}

/// `; bits a COT 0.89 to 3.1 times the published`
fn traffic(published: &Published, value: &Value) -> Option<String> {
    let unit = published.traffic_unit.as_ref()?;
    let Value::Measured {
        spread,
        published: Some(printed),
        ..
    } = value
    else {
        return None;
    };
    let range = range([spread.least / printed, spread.most / printed])?;
    Some(format!("; {unit} {range} times the published"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ferret::{table1, table5};

    fn figure(rate: Rate, values: [f64; 3]) -> Figure {
        Figure {
            rate,
            spread: Spread::of(values.to_vec()).expect("there are values"),
            published: 10.0,
            scaled: false,
        }
    }

    #[test]
    fn faster_and_slower_are_told() {
        let figures = [
            figure(Rate::Mbit10, [8.2, 8.3, 8.4]),
            figure(Rate::Mbit50, [10.1, 10.2, 10.3]),
            figure(Rate::Mbit100, [9.0, 12.0, 13.0]),
            figure(Rate::Gbit1, [22.0, 22.9, 24.0]),
        ];
        assert_eq!(
            time(&figures).as_deref(),
            Some(
                "0.83 to 2.3 times the published time over 4 links: faster over 10Mbit; about the same over 50Mbit, \
                 100Mbit; slower over 1Gbit"
            )
        );
        assert_eq!(
            time(&figures[3..]).as_deref(),
            Some("2.3 times the published time over 1Gbit: slower")
        );
        assert_eq!(time(&[]), None);
    }

    #[test]
    fn a_difference_can_be_lost_in_the_spread() {
        let figures = [
            figure(Rate::Mbit10, [-9.0, -4.0, 2.0]),
            figure(Rate::Mbit50, [19.0, 20.0, 21.0]),
        ];
        assert_eq!(
            time(&figures).as_deref(),
            Some(
                "2.0 times the published time over 50Mbit: slower; lost in the spread over 10Mbit"
            )
        );
        assert_eq!(
            time(&figures[..1]).as_deref(),
            Some("lost in the spread over 10Mbit")
        );
    }

    #[test]
    fn what_is_scaled_is_told() {
        let mut figures = [Rate::Mbit10, Rate::Mbit50].map(|rate| figure(rate, [10.0; 3]));
        figures[0].scaled = true;
        let same =
            "1.0 times the published time over 2 links: about the same; scaled from fewer COTs";
        assert_eq!(time(&figures), Some(format!("{same} over 10Mbit")));
        figures[1].scaled = true;
        assert_eq!(time(&figures).as_deref(), Some(same));
    }

    #[test]
    fn traffic_that_is_not_the_same_over_all_links_is_a_range() {
        let published = table1::published();
        let value = |spread| Value::measured(Some(spread), Some(0.44));
        let mut spread = Spread::exactly(0.88);
        assert_eq!(
            traffic(&published, &value(spread)).as_deref(),
            Some("; bits a COT 2.0 times the published")
        );
        (spread.least, spread.most) = (0.44, 1.32);
        assert_eq!(
            traffic(&published, &value(spread)).as_deref(),
            Some("; bits a COT 1.0 to 3.0 times the published")
        );
        assert_eq!(traffic(&published, &Value::None), None);
        let without = table5::published();
        assert_eq!(traffic(&without, &value(spread)), None);
    }
}
