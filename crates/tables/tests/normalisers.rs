//! The normalisers against their definition, `data/normalisers.json`, and against themselves.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use serde::Deserialize;
use volery_tables::normal::{KeyKind, NUMBERING_PLANS, Normaliser, Outcome, UNICODE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    #[serde(rename = "about")]
    _about: String,
    unicode: String,
    numbering_plans: String,
    normalisers: Vec<NormaliserSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NormaliserSpec {
    name: String,
    version: u32,
    gives: String,
    description: String,
    #[serde(rename = "rule")]
    _rule: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    argument: Option<String>,
    input: String,
    output: Option<String>,
    outcome: Option<String>,
}

impl NormaliserSpec {
    /// The normaliser with the argument of a vector.
    fn with(&self, argument: Option<&str>) -> Normaliser {
        let name = self.name.split('=').next().unwrap();
        let spec = match argument {
            Some(argument) => format!("{name}={argument}/v{}", self.version),
            None => format!("{name}/v{}", self.version),
        };
        Normaliser::parse(&spec).unwrap()
    }
}

fn definition() -> Definition {
    serde_json::from_str(include_str!("../data/normalisers.json")).unwrap()
}

/// One normaliser of each kind, several of those with an argument.
fn some_of_each() -> Vec<Normaliser> {
    let arguments = ["e164=DE", "e164=US", "date=%Y-%m-%d", "date=%d %B %Y %H%%"];
    let plain = Normaliser::all().map(|listed| listed.name);
    let plain = plain.filter(|name| !name.contains('='));
    plain.chain(arguments).map(|name| Normaliser::parse(name).unwrap()).collect()
}

#[test]
fn every_vector_of_the_definition_is_met() {
    let mut wrong = Vec::new();
    for defined in definition().normalisers {
        assert!(defined.vectors.len() >= 15, "{}", defined.name);
        for vector in &defined.vectors {
            let normaliser = defined.with(vector.argument.as_deref());
            let mut out = String::from("left over");
            let outcome = normaliser.apply(&vector.input, &mut out);
            let expected = match (&vector.output, vector.outcome.as_deref()) {
                (Some(output), None) if *output == vector.input => (Outcome::Same, output.as_str()),
                (Some(output), None) => (Outcome::Changed, output.as_str()),
                (None, Some("malformed")) => (Outcome::Malformed, ""),
                (None, Some("empty")) => (Outcome::Empty, ""),
                _ => panic!("{}: neither output nor outcome", defined.name),
            };
            if (outcome, out.as_str()) != expected {
                let (name, input) = (normaliser.name(), &vector.input);
                wrong.push(format!("{name} of {input:?}: {outcome:?} {out:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_is_that_of_the_definition() {
    let definition = definition();
    assert_eq!(definition.unicode, UNICODE);
    assert_eq!(definition.numbering_plans, format!("libphonenumber {NUMBERING_PLANS}"));
    let defined: Vec<_> = definition
        .normalisers
        .iter()
        .map(|defined| (defined.name.as_str(), defined.description.as_str()))
        .collect();
    let listed: Vec<_> = Normaliser::all().map(|one| (one.name, one.description)).collect();
    assert_eq!(defined, listed);
    for defined in &definition.normalisers {
        let kind = defined.with(defined.vectors[0].argument.as_deref()).gives();
        let gives = if kind == KeyKind::Date { "date" } else { "text" };
        assert_eq!(defined.gives, gives);
    }
}

/// Digests of what the libraries' data give for every character, and for numbers of every country
/// and region: they change with the data, also where no vector does.
#[test]
fn the_data_behind_version_1_have_not_changed() {
    let mut characters = blake3::Hasher::new();
    let mut numbers = blake3::Hasher::new();
    let mut out = String::new();
    let mut digest = |to: &mut blake3::Hasher, normaliser: &Normaliser, text: &str| {
        let outcome = normaliser.apply(text, &mut out);
        if outcome != Outcome::Same {
            to.update(format!("{text}\n{outcome:?}\n{out}\n").as_bytes());
        }
    };
    let names = ["lower", "nfc", "nfkc", "digits", "alnum", "name", "visible", "trim"];
    let normalisers = names.map(|name| Normaliser::parse(name).unwrap());
    let email = Normaliser::parse("email").unwrap();
    for c in '\0'..=char::MAX {
        let mut buffer = [0; 4];
        for normaliser in &normalisers {
            digest(&mut characters, normaliser, c.encode_utf8(&mut buffer));
        }
        digest(&mut characters, &email, &format!("{c}\u{301}@{c}.example"));
    }

    // As written in every region, where prefixes count; then with every country code and area code
    // at several lengths.
    let codes = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'Z').map(move |b| [a, b].map(char::from)));
    let regions = codes.filter_map(|[a, b]| Normaliser::parse(&format!("e164={a}{b}")).ok());
    let regions: Vec<_> = regions.collect();
    assert_eq!(regions.len(), 245);
    for region in &regions {
        for prefix in ["", "0", "00", "8", "1", "15", "011", "0055", "810"] {
            for number in ["2345678", "21345678", "612345678", "2015550123", "91123456789"] {
                digest(&mut numbers, region, &format!("{prefix}{number}"));
            }
        }
    }
    for start in 1_000..10_000 {
        for end in ["2345", "234567", "23456789"] {
            digest(&mut numbers, &regions[0], &format!("+{start}{end}"));
        }
    }
    let short = |hasher: blake3::Hasher| hasher.finalize().to_hex()[..32].to_owned();
    assert_eq!(
        [short(characters), short(numbers)],
        ["8d10fceb65adfbfa4f5304b9c8406825", "e9a6fe22b3e578de3f5fc685eea68a2a"],
        "the data of a library have changed, but version 1 must not: keep the library's version, \
         or add a version 2 of what changed"
    );
}

#[test]
fn white_space_is_the_set_of_the_definition() {
    let white: Vec<_> = ('\0'..=char::MAX).filter(|c| c.is_whitespace()).collect();
    let of_unicode = "\t\n\u{b}\u{c}\r \u{85}\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\
                      \u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{2028}\u{2029}\u{202f}\
                      \u{205f}\u{3000}";
    assert_eq!(white, of_unicode.chars().collect::<Vec<_>>());
}

#[test]
fn names_have_their_argument_and_version() {
    for (spec, name) in [
        ("email", "email/v1"),
        ("email/v1", "email/v1"),
        ("e164=de", "e164=DE/v1"),
        ("e164=GB/v1", "e164=GB/v1"),
        ("date=%d/%m/%Y", "date=%d/%m/%Y/v1"),
        ("date=%d/%m/%Y/v1", "date=%d/%m/%Y/v1"),
    ] {
        let normaliser = Normaliser::parse(spec).unwrap();
        assert_eq!(normaliser.name(), name);
        assert_eq!(Normaliser::parse(name).unwrap(), normaliser);
    }
    for normaliser in some_of_each() {
        assert_eq!(Normaliser::parse(&normaliser.name()).unwrap(), normaliser);
    }
}

#[test]
fn a_mistake_is_named_with_what_there_is() {
    for (spec, parts) in [
        ("", &["no normaliser ''", "email", "e164=REGION", "date=FORMAT"][..]),
        ("mail", &["no normaliser 'mail'", "email"]),
        ("Email", &["no normaliser 'Email'"]),
        ("email/v2", &["no version 2 of 'email'", "'email/v1'"]),
        ("email/v", &["no normaliser 'email/v'"]),
        ("email=DE", &["'email' takes no argument"]),
        ("lower=de", &["'lower' takes no argument"]),
        ("e164", &["needs the region", "e164=DE"]),
        ("e164=", &["'' is no region"]),
        ("e164=XX", &["'XX' is no region"]),
        ("e164=Germany", &["'Germany' is no region"]),
        ("e164=001", &["'001' is no region"]),
        ("e164=ÄÖ", &["is no region"]),
        ("date", &["no normaliser 'date'", "date=FORMAT"]),
        ("date=", &["year (%Y)"]),
        ("date=%d.%m", &["year (%Y)"]),
        ("date=%d.%m.%Y.%Y", &["once each"]),
        ("date=%d.%m.%b.%Y", &["once each"]),
        ("date=%d.%m.%y", &["century"]),
        ("date=%d.%m.%Y %p", &["no '%p'"]),
        ("date=%d.%m.%Y%", &["ends in '%'"]),
    ] {
        let text = Normaliser::parse(spec).unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{spec}: {text}");
    }
}

/// Normal forms are in normal form, and without a normal form there is no output.
fn check(normaliser: &Normaliser, text: &str) {
    let (mut once, mut twice) = (String::from("before"), String::new());
    match normaliser.apply(text, &mut once) {
        Outcome::Malformed | Outcome::Empty => assert_eq!(once, ""),
        outcome => {
            assert_eq!(outcome == Outcome::Same, once == text);
            assert!(!once.is_empty());
            // A date is in its format no longer.
            if normaliser.gives() == KeyKind::Text {
                let again = normaliser.apply(&once, &mut twice);
                assert_eq!((again, &twice), (Outcome::Same, &once), "{}", normaliser.name());
            }
        }
    }
}

#[test]
fn normal_forms_of_all_characters_are_stable() {
    let normalisers = some_of_each();
    // Above are ideographs without decomposition or case, and no characters at all.
    let of_interest = ('\0'..='\u{33ff}').chain('\u{a000}'..='\u{abff}');
    let of_interest = of_interest.chain('\u{d7a0}'..='\u{1ffff}');
    for c in of_interest.chain('\u{2f800}'..='\u{2fa1f}').chain('\u{e0000}'..='\u{e01ff}') {
        for text in [String::from(c), format!("{c}\u{345}\u{301}a{c}"), format!("b{c}b@x{c}.org")] {
            for normaliser in &normalisers {
                check(normaliser, &text);
            }
        }
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        // Marks, letters whose folding or composition is long, white and zero-width space.
        "[a-zAß\u{1e9e}İıςΣ\u{300}-\u{345}ﬁ\u{1fb3}가-각ᄀ-하-ᅵ\u{3099}か０-９ \u{a0}\u{200b}@.+]{0,12}",
        r#"["a-zA-Z.+İß\\ ]{0,9}@{0,2}[a-zA-Z0-9.-üß。]{0,12}\.[a-z]{1,4}"#,
        r"[+0(]{0,3}[0-9 ()/.\-x;a-z=０-９]{0,22}",
        "[0-9]{1,4}[-. /][0-9]{1,2}[-. /][0-9]{1,4}",
        "[0-9]{1,2} (January|May|mai|DECEMBER) [0-9]{4} [0-9]{1,2}%",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn normal_forms_are_stable(text in texts()) {
        for normaliser in some_of_each() {
            check(&normaliser, &text);
        }
    }

    #[test]
    fn names_of_any_form_are_read_or_refused(spec in "(email|e164|date|lower)?=?[%dmYbBHMS./ =vA-Z0-9é]{0,9}(/v1)?") {
        if let Ok(normaliser) = Normaliser::parse(&spec) {
            prop_assert_eq!(Normaliser::parse(&normaliser.name()), Ok(normaliser));
        }
    }
}
