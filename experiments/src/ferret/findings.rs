//! What came out, in sentences made from the figures.

use volery_bench::page::{Value, short};

use super::candidate::Candidate;
use super::published::{Published, Rate};
use super::tables::Line;

/// Ratios this near to 1 count as the same.
const SAME: f64 = 0.05;

/// One sentence for each row of the paper and each protocol of ours that has figures beside it; none where nothing was
/// measured.
pub(super) fn sentences(published: &Published, lines: &[Line]) -> Vec<String> {
    let mut all = Vec::new();
    for line in lines {
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
    let times = line.times.iter();
    let ratios: Vec<_> = times
        .filter_map(|(rate, _, values)| Some((*rate, values[place].ratio()?)))
        .collect();
    let time = time(&ratios)?;
    let whose = match candidate {
        Candidate::Ferret(..) => "here",
        Candidate::Volery(..) => "volery",
        Candidate::Iknp | Candidate::SoftSpoken => candidate.title(),
    };
    let traffic = traffic(published, &line.traffic[place]).unwrap_or_default();
    Some(format!(
        "{}, {}, {whose}: {time}{traffic}.",
        line.row.name(),
        line.row.security()
    ))
}

/// `0.830 to 2.29 times the published time over 6 links: faster over 10Mbit, slower over the others`
fn time(ratios: &[(Rate, f64)]) -> Option<String> {
    let values = ratios.iter().map(|(_, ratio)| *ratio);
    let (least, most) = (values.clone().reduce(f64::min)?, values.reduce(f64::max)?);
    let range = range(least, most);
    let links = match ratios {
        [(rate, _)] => rate.name().to_owned(),
        _ => format!("{} links", ratios.len()),
    };
    let over = |is: fn(f64) -> bool| -> Vec<_> {
        let some = ratios.iter().filter(move |(_, ratio)| is(*ratio));
        some.map(|(rate, _)| rate.name()).collect()
    };
    let kinds = [
        ("faster", over(|ratio| ratio < 1.0 - SAME)),
        ("about the same", over(|ratio| (ratio - 1.0).abs() <= SAME)),
        ("slower", over(|ratio| ratio > 1.0 + SAME)),
    ];
    let some = kinds.iter().filter(|(_, rates)| !rates.is_empty());
    let words: Vec<_> = some
        .map(|(word, rates)| match rates.len() == ratios.len() {
            true => (*word).to_owned(),
            false => format!("{word} over {}", rates.join(", ")),
        })
        .collect();
    Some(format!(
        "{range} times the published time over {links}: {}",
        words.join("; ")
    ))
}

/// `; bits a COT 0.886 to 3.11 times`
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
    let range = range(spread.least / printed, spread.most / printed);
    Some(format!("; {unit} {range} times"))
}

fn range(least: f64, most: f64) -> String {
    let (least, most) = (short(least), short(most));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use volery_bench::measurement::Spread;

    use super::*;
    use crate::ferret::{table1, table5};

    #[test]
    fn faster_and_slower_are_told() {
        let ratios = [
            (Rate::Mbit10, 0.83),
            (Rate::Mbit50, 1.02),
            (Rate::Gbit1, 2.294),
        ];
        assert_eq!(
            time(&ratios).as_deref(),
            Some(
                "0.830 to 2.29 times the published time over 3 links: faster over 10Mbit; about the same over 50Mbit; \
                 slower over 1Gbit"
            )
        );
        assert_eq!(
            time(&ratios[2..]).as_deref(),
            Some("2.29 times the published time over 1Gbit: slower")
        );
        assert_eq!(time(&[]), None);
    }

    #[test]
    fn traffic_that_is_not_the_same_over_all_links_is_a_range() {
        let published = table1::published();
        let value = |spread| Value::measured(Some(spread), Some(0.44));
        let mut spread = Spread::exactly(0.88);
        assert_eq!(
            traffic(&published, &value(spread)).as_deref(),
            Some("; bits a COT 2.00 times")
        );
        (spread.least, spread.most) = (0.44, 1.32);
        assert_eq!(
            traffic(&published, &value(spread)).as_deref(),
            Some("; bits a COT 1.00 to 3.00 times")
        );
        assert_eq!(traffic(&published, &Value::None), None);
        let without = table5::published();
        assert_eq!(traffic(&without, &value(spread)), None);
    }
}
