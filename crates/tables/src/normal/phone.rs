//! `e164`: telephone numbers in the form of ITU-T recommendation E.164.
//!
//! A number is read as it would be dialled in the region, so `+49 151 ..`, `0049 151 ..` and
//! `0151 ..` are one number in Germany. Numbers have to be *valid*, in a range that the numbering
//! plan of their country assigns, not only *possible*, of a length that the country has. In
//! countries whose numbers have many lengths, such as Germany, nearly every string of digits is
//! possible: placeholders such as 0000000, and local numbers without their area code, of which two
//! persons in two towns may have the same. These would be matches of different persons, which is
//! worse than to miss a match in a range that is younger than the data.

use rlibphonenumber::enums::{NumberLengthType, Region};
use rlibphonenumber::{PHONE_NUMBER_UTIL, ParseError, PhoneNumberFormat, ValidationError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phone(Region);

impl Phone {
    /// Reads a code of ISO 3166-1 in either case.
    pub(super) fn parse(code: &str) -> Result<Self, String> {
        let upper = code.to_ascii_uppercase();
        let region = Region::from_code(&upper).ok();
        let region = region.filter(|region| {
            PHONE_NUMBER_UTIL.get_supported_regions().any(|supported| supported == *region)
        });
        region.map(Self).ok_or_else(|| {
            format!(
                "'{code}' is no region with telephone numbers; regions have two letters: e164=DE, \
                 e164=US, e164=GB"
            )
        })
    }

    pub(super) fn region(&self) -> impl std::fmt::Display {
        self.0
    }

    /// Appends the number to `out`. An extension is not part of a number of E.164 and is dropped.
    pub(super) fn apply(&self, text: &str, out: &mut String) -> Option<()> {
        let number = PHONE_NUMBER_UTIL.parse(text.trim(), Some(self.0)).ok()?;
        if !PHONE_NUMBER_UTIL.is_valid_number(&number) {
            return None;
        }
        out.push_str(&PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164));
        Some(())
    }

    /// The cause for which [`apply`](Self::apply) refuses a text.
    pub(super) fn cause(&self, text: &str) -> &'static str {
        let number = match PHONE_NUMBER_UTIL.parse(text.trim(), Some(self.0)) {
            Ok(number) => number,
            Err(ParseError::InvalidCountryCode) => return "no such country code",
            Err(ParseError::TooShortAfterIdd | ParseError::TooShortNsn) => return "too short",
            Err(ParseError::TooLongNsn) => return "too long",
            Err(ParseError::NotANumber(_)) => return "no telephone number",
        };
        match PHONE_NUMBER_UTIL.is_possible_number_with_reason(&number) {
            Ok(NumberLengthType::IsPossibleLocalOnly) => "no area code",
            Ok(NumberLengthType::IsPossible) => "no such prefix",
            Err(ValidationError::TooShort) => "too short",
            Err(ValidationError::TooLong) => "too long",
            Err(_) => "no such length",
        }
    }
}
