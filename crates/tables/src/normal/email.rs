//! `email`: addresses of RFC 5321 and, with characters beyond ASCII, of RFC 6531.
//!
//! The local part is folded although RFC 5321 leaves its case to the host: hosts that tell
//! addresses apart by case are rare, and people write theirs in any case. Dots and what follows a
//! `+` stay: whether they matter is the rule of one provider and not of another, so to remove them
//! would make two mailboxes one.

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// Bytes of a local part, and of an address: RFC 5321, sections 4.5.3.1.1 and 4.5.3.1.3, where a
/// path has two more for its angle brackets.
const LONGEST_LOCAL_PART: usize = 64;
const LONGEST: usize = 254;

/// Appends the normal form of an address to `out`, which is empty.
pub(super) fn apply(text: &str, out: &mut String) -> Option<()> {
    let (local, domain) = text.trim().rsplit_once('@')?;
    local_part(local, out)?;
    out.push('@');
    let domain = Uts46::new()
        .to_ascii(
            domain.as_bytes(),
            AsciiDenyList::STD3,
            Hyphens::CheckFirstLast,
            DnsLength::Verify,
        )
        .ok()?;
    // An address in the Internet is in a domain below a top-level one, whose name is no number
    // (RFC 3696, section 2).
    let (_, top) = domain.rsplit_once('.')?;
    if top.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    out.push_str(&domain);
    (out.len() <= LONGEST).then_some(())
}

/// The cause for which [`apply`] refuses a text.
pub(super) fn cause(text: &str) -> &'static str {
    match text.trim().rsplit_once('@') {
        None => "no @",
        Some((local, _)) if local_part(local, &mut String::new()).is_none() => {
            "a wrong name before the @"
        }
        Some((_, domain)) if !domain.contains('.') => "a domain without a dot",
        Some(_) => "no such form of a domain",
    }
}

fn local_part(text: &str, out: &mut String) -> Option<()> {
    let unquoted;
    let text = match text.strip_prefix('"') {
        Some(rest) => {
            unquoted = unquote(rest)?;
            &unquoted
        }
        None => text,
    };
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        // Canonical caseless matching: definition D145 of Unicode.
        let decomposer = DecomposingNormalizer::new_nfd();
        let folded = CaseMapper::new().fold_string(&decomposer.normalize(text)).into_owned();
        out.push_str(&ComposingNormalizer::new_nfc().normalize(&folded));
    }
    let whole = out.len() <= LONGEST_LOCAL_PART
        && out.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext));
    whole.then_some(())
}

/// The content of a quoted string after its first quote: RFC 5321, section 4.1.2. Quotes that are
/// not needed do not make another address.
fn unquote(text: &str) -> Option<String> {
    let mut content = String::new();
    let mut characters = text.strip_suffix('"')?.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => content.push(characters.next()?),
            '"' => return None,
            _ => content.push(c),
        }
    }
    Some(content)
}

/// `atext` of RFC 5322, section 3.2.3, and beyond ASCII what RFC 6532 adds, but for characters
/// that are not seen or that this version of Unicode does not have.
fn is_atext(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    }
    let unseen = GeneralCategoryGroup::Other.union(GeneralCategoryGroup::Separator);
    !unseen.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}
