//! The settings on which both sides must agree: the protocol, its security, and who learns the
//! result.

use volery_channel::{Hello, Link, Role};
use volery_pcg::Security;
use volery_psi::matching::{Output, Protocol, Task};

pub use crate::protocol_choice::ProtocolChoice;

/// The names under which the handshake compares the settings: what the sides get.
pub const RESULT: &str = "--result";
/// Who learns the result.
pub const BOTH: &str = "--both";
/// The rules of both sides.
pub const KEYS: &str = "the key columns";
/// The progress of an earlier attempt.
pub const PROGRESS: &str = "the progress of the run (--resume)";
/// The names that the receiver has for the sender's columns.
pub const NAMES: &str = "the number of value columns (--value-name)";

/// The result for the matching rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The receiver gets its matching rows.
    Psi,
    /// The receiver gets them with columns of the sender.
    Lookup,
}

impl Operation {
    /// The subcommand's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Psi => "psi",
            Self::Lookup => "lookup",
        }
    }
}

/// A combination of settings that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {what}")]
pub struct SettingsError {
    /// The option at fault, as on the command line.
    pub option: &'static str,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub hint: std::borrow::Cow<'static, str>,
}

pub(crate) fn wrong<T>(
    option: &'static str,
    what: impl Into<String>,
    hint: &'static str,
) -> Result<T, SettingsError> {
    let (what, hint) = (what.into(), hint.into());
    Err(SettingsError { option, what, hint })
}

/// Refuses a link for a protocol that does not depend on it.
pub(crate) fn check_link(name: ProtocolChoice, link: Option<Link>) -> Result<(), SettingsError> {
    if link.is_some() && name != ProtocolChoice::Auto {
        let what = format!("--protocol {name} is the same on every link");
        return wrong("--link", what, "only auto chooses by the link");
    }
    Ok(())
}

/// The link that a protocol is chosen for, as the handshake compares it.
pub(crate) fn link_text(link: Option<Link>) -> String {
    link.map_or("measured".to_owned(), |link| {
        format!("{} bit/s, {} s", link.bits_per_second, link.round_trip)
    })
}

/// The settings of a run that both sides share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The result.
    pub verb: Operation,
    /// This side's role.
    pub role: Role,
    /// The protocol.
    pub name: ProtocolChoice,
    /// The adversary that the run is secure against.
    pub security: Security,
    /// Whether the sender learns its matching rows as well.
    pub both: bool,
    /// The link that the protocol is chosen for; measured without it.
    pub link: Option<Link>,
}

impl Settings {
    /// Checks the options; without `security` it is malicious where the protocol and `both` allow
    /// it.
    pub fn new(
        verb: Operation,
        role: Role,
        name: ProtocolChoice,
        security: Option<Security>,
        both: bool,
        link: Option<Link>,
    ) -> Result<Self, SettingsError> {
        check_link(name, link)?;
        // Whether a protocol of this name has a security, if the sender learns the result or not.
        let has = |security, both| {
            let output = Output::Items { both, search: verb == Operation::Lookup };
            matches!(name, ProtocolChoice::Auto | ProtocolChoice::Served)
                || name.protocol(security, &output).is_some()
        };
        if !has(Security::SemiHonest, false) {
            let what = format!("{name} gives no rows");
            let hint = "choose --protocol auto, vole, vole-low, kkrt or dh; --result count and others of psi are for circuit-PSI";
            return wrong("--protocol", what, hint);
        }
        if both && !has(Security::SemiHonest, true) {
            let what = format!("{name} gives the result to the receiver only");
            let hint = "remove --both, or choose --protocol auto, vole, vole-low or kkrt";
            return wrong("--both", what, hint);
        }
        if name == ProtocolChoice::Served {
            let (option, what, hint) = match (verb, role, both) {
                (Operation::Lookup, _, _) => (
                    "--protocol",
                    "a server tells which keys it has, and no columns",
                    "use 'volery psi', or another protocol",
                ),
                (_, Role::Sender, _) => (
                    "--role",
                    "the sender of --protocol served is 'volery serve'",
                    "start 'volery serve --help', or choose another protocol",
                ),
                (_, _, true) => (
                    "--both",
                    "served gives the result to the receiver only",
                    "remove --both, or choose --protocol auto, vole, vole-low or kkrt",
                ),
                _ => ("", "", ""),
            };
            if !option.is_empty() {
                return wrong(option, what, hint);
            }
        }
        let malicious = has(Security::Malicious, false);
        let security = match security {
            Some(Security::Malicious) if !malicious => {
                let what = format!("{name} is secure against semi-honest peers only");
                let hint = "choose --protocol auto, vole or dh for security against malicious peers, or --security semi-honest";
                return wrong("--security", what, hint);
            }
            Some(Security::Malicious) if both => {
                let what = "malicious security is not available with --both: the sender would have to trust the receiver's report of the result";
                let hint = "remove --both, or use --security semi-honest on both sides";
                return wrong("--security", what, hint);
            }
            Some(security) => security,
            None if malicious && !both => Security::Malicious,
            None => Security::SemiHonest,
        };
        Ok(Self { verb, role, name, security, both, link })
    }

    /// The results.
    pub const fn output(&self) -> Output {
        Output::Items { both: self.both, search: matches!(self.verb, Operation::Lookup) }
    }

    /// The task of a protocol for sets of sender and receiver of these sizes.
    pub const fn task(&self, [sender_items, receiver_items]: [u64; 2]) -> Task {
        Task {
            sender_items,
            receiver_items,
            security: self.security,
            output: self.output(),
            with_workers: false,
        }
    }

    /// The protocol, if it is named.
    pub fn protocol(&self) -> Option<Protocol> {
        self.name.protocol(self.security, &self.output())
    }

    /// The settings of a run with workers, whose protocol is named, and if it was to be chosen the
    /// reason for the one that they run.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new): the protocol is the same on every link.
    pub fn for_workers(self) -> Result<(Self, Option<String>), SettingsError> {
        let (name, why) = self.name.for_workers(self.task([0, 0]));
        let Self { verb, role, both, .. } = self;
        let settings = Self::new(verb, role, name, Some(self.security), both, self.link)?;
        Ok((settings, why))
    }

    /// Whether this side gets rows.
    pub fn gets_rows(&self) -> bool {
        self.role == Role::Receiver || self.both
    }

    /// The first message of this side; the peer's must be the same. `keys` describes the rules
    /// without the names of columns.
    pub fn hello(&self, keys: &str) -> Hello {
        let both = if self.both { "yes" } else { "no" };
        let mut fields = Vec::new();
        if self.verb == Operation::Psi {
            fields.push((RESULT, "rows".to_owned()));
        }
        fields.extend([
            ("--protocol", self.name.to_string()),
            (BOTH, both.to_owned()),
            ("security", self.security.to_string()),
        ]);
        if self.name == ProtocolChoice::Auto {
            fields.push(("--link", link_text(self.link)));
        }
        fields.push((KEYS, keys.to_owned()));
        Hello { protocol: self.verb.name(), role: self.role.name(), fields }
    }
}
