//! Normalisers that accept every text.

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};

pub(super) fn trim(text: &str, out: &mut String) {
    out.push_str(text.trim());
}

pub(super) fn collapse(text: &str, out: &mut String) {
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}

pub(super) fn visible(text: &str, out: &mut String) {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let hidden = |c: char| ignorable.contains(c) || c.is_control() && !c.is_whitespace();
    out.extend(text.chars().filter(|&c| !hidden(c)));
}

/// Full case folding, without the exceptions for Turkic languages.
pub(super) fn lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        out.push_str(&CaseMapper::new().fold_string(text));
    }
}

pub(super) fn nfc(text: &str, out: &mut String) {
    out.push_str(&ComposingNormalizer::new_nfc().normalize(text));
}

pub(super) fn nfkc(text: &str, out: &mut String) {
    out.push_str(&ComposingNormalizer::new_nfkc().normalize(text));
}

pub(super) fn digits(text: &str, out: &mut String) {
    let categories = CodePointMapData::<GeneralCategory>::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            out.push(c);
        } else if !c.is_ascii() && categories.get(c) == GeneralCategory::DecimalNumber {
            // Unicode assigns decimal digits in runs from 0 to 9, and runs may be adjacent.
            let before = (1..).take_while(|&back| {
                categories.get32(c as u32 - back) == GeneralCategory::DecimalNumber
            });
            let value = before.count() % 10;
            out.push(char::from(b"0123456789"[value]));
        }
    }
}

pub(super) fn alnum(text: &str, out: &mut String) {
    let kept = GeneralCategoryGroup::Letter
        .union(GeneralCategoryGroup::Mark)
        .union(GeneralCategoryGroup::Number);
    out.extend(text.chars().filter(|&c| is_visible_in(c, kept)));
}

/// Accents and the like are the block of combining diacritical marks. Other marks are letters of
/// their scripts, such as the vowels of Devanagari, and stay.
pub(super) fn name(text: &str, out: &mut String) {
    let kept = GeneralCategoryGroup::Letter.union(GeneralCategoryGroup::Mark);
    let is_letter = |c: char| is_visible_in(c, kept) && !('\u{300}'..='\u{36f}').contains(&c);
    let decomposer = DecomposingNormalizer::new_nfkd();
    let letters = |text: &str| -> String {
        let decomposed = decomposer.normalize_iter(text.chars());
        decomposed.filter(|&c| is_letter(c)).collect()
    };
    // Folding may give characters that decompose.
    let folded = letters(&CaseMapper::new().fold_string(&letters(text)));
    out.push_str(&ComposingNormalizer::new_nfc().normalize(&folded));
}

fn is_visible_in(c: char, group: GeneralCategoryGroup) -> bool {
    if c.is_ascii() {
        return group.contains(CodePointMapData::<GeneralCategory>::new().get(c));
    }
    group.contains(CodePointMapData::<GeneralCategory>::new().get(c))
        && !CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}
