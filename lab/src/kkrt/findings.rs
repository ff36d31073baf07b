//! Sentences about measurements: cells that were not measured are not mentioned.

use crate::measurement::Spread;

use super::published::{Protocol, Published, Quantity, Row, SIZES, Setting, sizes};
use super::tables::{Figures, Ours, rows};
use crate::words::{Standing, few_runs, range};

/// The words for less, more or the same, for ours compared with published figures, or for one of
/// ours compared with another.
struct Words {
    less: &'static str,
    more: &'static str,
    same: &'static str,
}

const TIMES: Words = Words {
    less: "faster",
    more: "slower",
    same: "no difference beyond the spread and 5 %",
};

const BYTES: Words = Words {
    less: "less",
    more: "more",
    same: "the same",
};

/// For each row, the comparison of ours with the published figures, one sentence for each column of
/// ours.
pub(super) fn beside_published(published: &Published, figures: Figures<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for row in &published.rows {
        for ours in Ours::BOTH {
            let ratio = |(&log_items, &value): (&u32, &f64)| {
                if value < least_telling(row.quantity) {
                    return None;
                }
                let spread = figures.spread(ours, row, log_items)?;
                Some((log_items, spread.times(1.0 / value)))
            };
            let figures = published.columns.iter().zip(&row.values);
            let ratios: Vec<_> = figures.filter_map(ratio).collect();
            sentences.extend(sentence(row, ours, &ratios));
        }
    }
    sentences
}

/// Below, a published figure has too few digits to be compared: bytes are printed in hundredths of
/// a MiB, times in whole milliseconds.
const fn least_telling(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Traffic => 0.1,
        _ => 10.0,
    }
}

/// `BaRK-OPRF over LAN, here: 0.12 to 0.31 of the published time at 2^8 to 2^24: faster.` `None`
/// for no ratios.
fn sentence(row: &Row, ours: Ours, ratios: &[(u32, Spread)]) -> Option<String> {
    let spreads = || ratios.iter().map(|(_, ratio)| *ratio);
    let range = range(spreads().map(|ratio| ratio.median))?;
    let (what, words, runs) = match row.quantity {
        Quantity::Traffic => ("bytes", BYTES, ""),
        _ => ("time", TIMES, few_runs(spreads())),
    };
    let standing = |(log_items, ratio): &(u32, Spread)| {
        let standing = match row.quantity {
            Quantity::Traffic => bytes_to_published(ratio.median),
            _ => Standing::to_published(*ratio, 1.0),
        };
        (*log_items, standing)
    };
    let standings: Vec<_> = ratios.iter().map(standing).collect();
    let of_what = match ours {
        Ours::Here => "",
        Ours::Volery => " of BaRK-OPRF",
    };
    let subject = subject(row, ours);
    let at = listed(&places(&standings));
    let verdict = verdict(&standings, &words);
    Some(format!(
        "{subject}: {range} of the published {what}{of_what} at {at}: {verdict}{runs}."
    ))
}

/// The comparison of bytes with published ones, by their ratio. Bytes do not vary between runs, so
/// only the printed digits limit the precision.
fn bytes_to_published(ratio: f64) -> Standing {
    /// Ratios this close to one are the same figure, as far as two printed digits show.
    const SAME_BYTES: f64 = 0.01;
    if ratio < 1.0 - SAME_BYTES {
        Standing::Less
    } else if ratio > 1.0 + SAME_BYTES {
        Standing::More
    } else {
        Standing::Same
    }
}

/// The default compared with PSSZ, both measured here: over each link, for each length of the
/// items.
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
            if !both.is_empty() {
                let bits = pssz.bits_text();
                let against = against(&both);
                sentences.push(format!(
                    "kkrt against PSSZ on items of {bits} bits, both here, over {setting} {against}."
                ));
            }
        }
    }
    sentences
}

/// `at 2^8 to 2^24: faster`: the time of the first against that of the second.
fn against(both: &[(u32, Spread, Spread)]) -> String {
    let standings: Vec<_> = both
        .iter()
        .map(|(log_items, first, second)| (*log_items, Standing::of(*first, *second)))
        .collect();
    let at = listed(&places(&standings));
    let verdict = verdict(&standings, &TIMES);
    let runs = few_runs(both.iter().flat_map(|(_, first, second)| [*first, *second]));
    format!("at {at}: {verdict}{runs}")
}

fn places(standings: &[(u32, Standing)]) -> Vec<u32> {
    standings.iter().map(|(log_items, _)| *log_items).collect()
}

/// A property with the sizes at which it holds; only the property if it holds at all sizes.
fn verdict(standings: &[(u32, Standing)], words: &Words) -> String {
    let part = |(standing, what): (Standing, &str)| {
        let there = standings.iter().filter(|(_, is)| *is == standing);
        let there: Vec<_> = there.copied().collect();
        match there.len() {
            0 => None,
            all if all == standings.len() => Some(what.to_owned()),
            _ => Some(format!("{what} at {}", listed(&places(&there)))),
        }
    };
    let parts = [
        (Standing::Less, words.less),
        (Standing::More, words.more),
        (Standing::Same, words.same),
    ];
    let texts: Vec<_> = parts.into_iter().filter_map(part).collect();
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

    fn runs(values: &[f64]) -> Spread {
        Spread::of(values.to_vec()).expect("there are values")
    }

    /// Three runs, a little apart.
    fn about(value: f64) -> Spread {
        runs(&[0.99 * value, value, 1.01 * value])
    }

    fn row(published: &Published, protocol: Protocol) -> &Row {
        let found = published.rows.iter().find(|row| row.protocol == protocol);
        found.expect("all have rows")
    }

    #[test]
    fn slower_is_said_as_plainly_as_faster() {
        let published = table3::published();
        let bark = row(&published, Protocol::Bark);
        let ratios = [(8, about(0.123)), (12, about(0.2)), (16, about(0.31))];
        assert_eq!(
            sentence(bark, Ours::Here, &ratios).as_deref(),
            Some(
                "BaRK-OPRF over LAN, here: 0.12 to 0.31 of the published time at 2^8 to 2^16: faster."
            )
        );
        let ratios = [(8, about(0.5)), (20, about(1.0)), (24, about(1.5))];
        assert_eq!(
            sentence(bark, Ours::Volery, &ratios).as_deref(),
            Some(
                "kkrt over LAN, volery: 0.50 to 1.5 of the published time of BaRK-OPRF at 2^8, 2^20 and 2^24: \
                 faster at 2^8, slower at 2^24, no difference beyond the spread and 5 % at 2^20."
            )
        );
        let pssz = row(&published, Protocol::Pssz);
        assert_eq!(
            sentence(pssz, Ours::Here, &[(24, runs(&[2.0]))]).as_deref(),
            Some(
                "PSSZ on items of 32 bits over LAN, here: 2.0 of the published time at 2^24: slower (one run)."
            )
        );
        assert_eq!(sentence(bark, Ours::Here, &[]), None);
    }

    /// Times vary and bytes do not: 3 % are a difference between bytes, even of one run.
    #[test]
    fn bytes_are_compared_more_closely_than_times() {
        let [times, bytes] = [table3::published(), table5::published()];
        let end = |published: &Published, ratio: f64| {
            let naive = row(published, Protocol::Naive);
            let text = sentence(naive, Ours::Here, &[(8, runs(&[ratio]))]);
            let text = text.expect("there is a ratio");
            text.rsplit(": ").next().map(str::to_owned)
        };
        for (ratio, of_bytes) in [
            (0.97, "less."),
            (0.995, "the same."),
            (1.005, "the same."),
            (1.03, "more."),
        ] {
            assert_eq!(end(&bytes, ratio).as_deref(), Some(of_bytes), "{ratio}");
            assert_eq!(
                end(&times, ratio).as_deref(),
                Some("no difference beyond the spread and 5 % (one run)."),
                "{ratio}"
            );
        }
    }

    /// A published time of one digit is no measure.
    #[test]
    fn nothing_is_said_of_a_single_digit() {
        let naive = table3::published().rows.swap_remove(0);
        assert_eq!(naive.values[..3], [1.0, 6.0, 75.0]);
        let telling = naive.values.iter();
        let telling = telling.filter(|value| **value >= least_telling(naive.quantity));
        assert_eq!(telling.count(), 3);
    }

    #[test]
    fn what_overlaps_is_no_difference() {
        let both = [
            (8, runs(&[3.0, 4.0]), runs(&[1.0, 2.0])),
            (12, runs(&[3.0, 4.0]), runs(&[2.0, 3.5])),
            (16, runs(&[1.0, 1.1]), runs(&[2.0, 3.5])),
        ];
        assert_eq!(
            against(&both),
            "at 2^8 to 2^16: faster at 2^16, slower at 2^8, no difference beyond the spread and 5 % at 2^12 (two runs)"
        );
        assert_eq!(against(&[(8, about(1.0), about(2.0))]), "at 2^8: faster");
        // One run of each, 4 % apart.
        assert_eq!(
            against(&[(8, runs(&[17.1]), runs(&[16.5]))]),
            "at 2^8: no difference beyond the spread and 5 % (one run)"
        );
    }
}
