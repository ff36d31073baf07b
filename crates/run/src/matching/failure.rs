//! Errors of a matching, as failures with the option at fault and a remedy.

use volery_matching::{Error, SettingsError};
use volery_tables::Problem;

use super::served;
use crate::failure::{Failure, Status};
use crate::{cluster, totals};

impl From<SettingsError> for Failure {
    fn from(wrong: SettingsError) -> Self {
        let failure = Self::usage(wrong.option, wrong.what);
        match &*wrong.hint {
            "" => failure,
            hint => failure.with_hint(hint),
        }
    }
}

impl From<volery_tables::Error> for Failure {
    fn from(error: volery_tables::Error) -> Self {
        let status = match error.problem() {
            // Options that go with no table.
            Problem::Rule { .. } | Problem::NoKey | Problem::NamedTwice { .. } => Status::Usage,
            _ => Status::Other,
        };
        let failure = Self::new(status, &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = error.hint();
        let failure = match error {
            Error::Protocol(volery_psi::Error::Channel(error)) => disagreement(error),
            Error::Protocol(error) if let Some(refused) = served::refused(&error) => {
                return refused;
            }
            Error::Table(error) => return error.into(),
            Error::LongKeys => Self::usage("--key", error),
            Error::LittleMemory { .. } => Self::usage("--memory", error),
            Error::LargeTotal { .. } => Self::usage("--bound", error),
            other => Self::new(Status::Other, other),
        };
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// The remedy for settings that differ between the two sides.
fn disagreement(error: volery_channel::Error) -> Failure {
    use volery_channel::Error;
    let hint = match &error {
        Error::Mismatch { field, .. } if field == volery_matching::KEYS => {
            "define the keys in the same way on both sides: the same number of columns in --key and the same number of --or options, in the same order, with the same types and normalisers; the column names may differ"
        }
        Error::Mismatch { field, .. } if field == volery_matching::BOTH => {
            "the sender gets the result only if both sides set --both"
        }
        Error::Mismatch { field, .. } if field == volery_matching::NAMES => {
            "give a name in --value-name for each of the sender's columns, in their order, or leave --value-name out"
        }
        Error::Mismatch { field, .. } if cluster::disagreement(field).is_some() => {
            cluster::disagreement(field).unwrap_or_default()
        }
        Error::Mismatch { field, .. } if totals::disagreement(field).is_some() => {
            totals::disagreement(field).unwrap_or_default()
        }
        Error::Mismatch { field, .. } if field == volery_matching::PROGRESS => {
            "use the folders of the same run on both sides; to begin anew, name new folders on both"
        }
        _ => return error.into(),
    };
    Failure::from(error).with_hint(hint)
}
