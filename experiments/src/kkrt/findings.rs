//! Sentences about what was measured: nothing is said of what was not.

use volery_bench::measurement::Spread;

use super::published::{Protocol, Published, Quantity, Row, SIZES, Setting, sizes};
use super::tables::{Figures, Ours, rows};

/// What came out of a comparison, in the words for times or for bytes.
struct Words {
    /// What is compared.
    what: &'static str,
    less: &'static str,
    more: &'static str,
}

/// Of each row how ours compares with what was published, a sentence for each column of ours.
pub(super) fn beside_published(published: &Published, figures: Figures<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for row in &published.rows {
        for ours in Ours::BOTH {
            let ratio = |(&log_items, &value): (&u32, &f64)| {
                if value < least_telling(row.quantity) {
                    return None;
                }
                let spread = figures.spread(ours, row, log_items)?;
                Some((log_items, spread.median / value))
            };
            let figures = published.columns.iter().zip(&row.values);
            let ratios: Vec<_> = figures.filter_map(ratio).collect();
            sentences.extend(sentence(row, ours, &ratios));
        }
    }
    sentences
}

/// Below, a published figure has too few digits to be compared: bytes are printed in hundredths of a MiB.
const fn least_telling(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Traffic => 0.1,
        _ => 0.0,
    }
}

/// `BaRK-OPRF over LAN, here: 0.12 to 0.31 of the published time at 2^8 to 2^24: faster.`
fn sentence(row: &Row, ours: Ours, ratios: &[(u32, f64)]) -> Option<String> {
    /// Ratios that close to one are the same figure: as near as two printed digits tell.
    const SAME: f64 = 0.01;
    let words = words(row.quantity);
    let places: Vec<_> = ratios.iter().map(|(log_items, _)| *log_items).collect();
    let least = ratios.iter().map(|(_, ratio)| *ratio).reduce(f64::min)?;
    let most = ratios.iter().map(|(_, ratio)| *ratio).reduce(f64::max)?;
    let range = match [least, most].map(two_digits) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
    };
    let where_it = |is: fn(f64) -> bool| -> Vec<u32> {
        let there = ratios.iter().filter(|(_, ratio)| is(*ratio));
        there.map(|(log_items, _)| *log_items).collect()
    };
    let verdict = verdict(
        &places,
        &[
            (words.less, where_it(|ratio| ratio < 1.0 - SAME)),
            (words.more, where_it(|ratio| ratio > 1.0 + SAME)),
            ("the same", where_it(|ratio| (ratio - 1.0).abs() <= SAME)),
        ],
    );
    let what = words.what;
    let of_what = match ours {
        Ours::Here => "",
        Ours::Volery => " of BaRK-OPRF",
    };
    let at = listed(&places);
    let subject = subject(row, ours);
    Some(format!(
        "{subject}: {range} of the published {what}{of_what} at {at}: {verdict}."
    ))
}

/// How the default compares with PSSZ, both measured here: over each link, for each length of the items. Where the runs of
/// one and of the other overlap nothing is said but that.
pub(super) fn beside_pssz(published: &Published, figures: Figures<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for setting in Setting::ALL {
        let of =
            |protocol| rows(published, Some(setting)).filter(move |row| row.protocol == protocol);
        let Some(bark) = of(Protocol::Bark).next() else {
            continue;
        };
        for pssz in of(Protocol::Pssz) {
            let both = |log_items: u32| {
                let default = figures.spread(Ours::Volery, bark, log_items)?;
                let theirs = figures.spread(Ours::Here, pssz, log_items)?;
                Some((log_items, default, theirs))
            };
            let both: Vec<_> = sizes(figures.scope).into_iter().filter_map(both).collect();
            if both.is_empty() {
                continue;
            }
            let places: Vec<_> = both.iter().map(|(log_items, ..)| *log_items).collect();
            let bits = pssz.bits_text();
            let verdict = against(&places, &both);
            let at = listed(&places);
            sentences.push(format!(
                "kkrt against PSSZ on items of {bits} bits, both here, over {setting} at {at}: {verdict}."
            ));
        }
    }
    sentences
}

/// Where the first is faster, and where the second.
fn against(places: &[u32], both: &[(u32, Spread, Spread)]) -> String {
    let where_it = |is: fn(Spread, Spread) -> bool| -> Vec<u32> {
        let there = both.iter().filter(|(_, first, second)| is(*first, *second));
        there.map(|(log_items, ..)| *log_items).collect()
    };
    let faster = |first: Spread, second: Spread| first.most < second.least;
    let overlapping =
        |first: Spread, second: Spread| first.most >= second.least && second.most >= first.least;
    verdict(
        places,
        &[
            ("faster", where_it(faster)),
            (
                "slower",
                where_it(|first, second| second.most < first.least),
            ),
            ("no difference beyond the spread", where_it(overlapping)),
        ],
    )
}

/// Which of several things is so at which sizes; that alone which is so at all of them.
fn verdict(all: &[u32], parts: &[(&str, Vec<u32>)]) -> String {
    let some = parts.iter().filter(|(_, places)| !places.is_empty());
    let texts: Vec<_> = some
        .map(|(what, places)| {
            if places.len() == all.len() {
                (*what).to_owned()
            } else {
                format!("{what} at {}", listed(places))
            }
        })
        .collect();
    texts.join(", ")
}

/// `BaRK-OPRF over LAN, offline, here`.
fn subject(row: &Row, ours: Ours) -> String {
    let mut subject = match (ours, row.protocol) {
        (Ours::Volery, _) => "kkrt".to_owned(),
        (Ours::Here, Protocol::Naive) => "Naive hashing".to_owned(),
        (Ours::Here, Protocol::Pssz) => format!("PSSZ on items of {} bits", row.bits_text()),
        (Ours::Here, Protocol::Bark) => row.protocol.to_string(),
    };
    if let Some(setting) = row.setting {
        subject = format!("{subject} over {setting}");
    }
    if matches!(row.quantity, Quantity::Offline | Quantity::Online) {
        subject = format!("{subject}, {}", row.quantity);
    }
    format!("{subject}, {}", ours.name())
}

const fn words(quantity: Quantity) -> Words {
    match quantity {
        Quantity::Traffic => Words {
            what: "bytes",
            less: "less",
            more: "more",
        },
        _ => Words {
            what: "time",
            less: "faster",
            more: "slower",
        },
    }
}

/// Sizes as powers of two, three or more neighbours as a range: `2^8 to 2^16 and 2^24`.
fn listed(places: &[u32]) -> String {
    let number = |place: &u32| SIZES.iter().position(|size| size == place);
    let mut texts = Vec::new();
    for run in places.chunk_by(|a, b| number(a).map(|number| number + 1) == number(b)) {
        match run {
            [first, _, .., last] => texts.push(format!("2^{first} to 2^{last}")),
            few => texts.extend(few.iter().map(|place| format!("2^{place}"))),
        }
    }
    match texts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// A ratio: two digits after the point, and two that are not zero.
fn two_digits(ratio: f64) -> String {
    let digits = (1.0 - ratio.max(1e-6).log10().floor()).clamp(2.0, 7.0);
    format!("{ratio:.0$}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::super::{table3, table5};
    use super::*;

    #[test]
    fn sizes_are_listed() {
        for (places, text) in [
            (&[8, 12, 16, 20, 24][..], "2^8 to 2^24"),
            (&[8, 12], "2^8 and 2^12"),
            (&[8], "2^8"),
            (&[8, 12, 16, 24], "2^8 to 2^16 and 2^24"),
            (&[8, 16, 24], "2^8, 2^16 and 2^24"),
            (&[], ""),
        ] {
            assert_eq!(listed(places), text);
        }
    }

    #[test]
    fn ratios_have_two_digits() {
        let texts = [0.0025, 0.123, 0.996, 12.345, 0.0].map(two_digits);
        assert_eq!(texts, ["0.0025", "0.12", "1.00", "12.35", "0.0000000"]);
    }

    #[test]
    fn slower_is_said_as_plainly_as_faster() {
        let published = table3::published();
        let row = |protocol| {
            let found = published.rows.iter().find(|row| row.protocol == protocol);
            found.expect("all have rows")
        };
        let bark = row(Protocol::Bark);
        assert_eq!(
            sentence(bark, Ours::Here, &[(8, 0.123), (12, 0.2), (16, 0.31)]).as_deref(),
            Some(
                "BaRK-OPRF over LAN, here: 0.12 to 0.31 of the published time at 2^8 to 2^16: faster."
            )
        );
        assert_eq!(
            sentence(bark, Ours::Volery, &[(8, 0.5), (20, 1.0), (24, 1.5)]).as_deref(),
            Some(
                "kkrt over LAN, volery: 0.50 to 1.50 of the published time of BaRK-OPRF at 2^8, 2^20 and 2^24: \
                 faster at 2^8, slower at 2^24, the same at 2^20."
            )
        );
        assert_eq!(
            sentence(row(Protocol::Pssz), Ours::Here, &[(24, 2.0)]).as_deref(),
            Some(
                "PSSZ on items of 32 bits over LAN, here: 2.00 of the published time at 2^24: slower."
            )
        );
        assert_eq!(sentence(bark, Ours::Here, &[]), None);
        let traffic = &table5::published().rows[0];
        assert_eq!(
            sentence(traffic, Ours::Here, &[(8, 1.25)]).as_deref(),
            Some("Naive hashing, here: 1.25 of the published bytes at 2^8: more.")
        );
    }

    #[test]
    fn what_overlaps_is_no_difference() {
        let runs = |values: &[f64]| Spread::of(values.to_vec()).expect("there are values");
        let both = [
            (8, runs(&[3.0, 4.0]), runs(&[1.0, 2.0])),
            (12, runs(&[3.0, 4.0]), runs(&[2.0, 3.5])),
            (16, runs(&[1.0]), runs(&[2.0, 3.5])),
        ];
        let places = [8, 12, 16];
        assert_eq!(
            against(&places, &both),
            "faster at 2^16, slower at 2^8, no difference beyond the spread at 2^12"
        );
        assert_eq!(against(&places[2..], &both[2..]), "faster");
    }
}
