//! What both sides must agree on: the protocol, its security, and who learns the result.

use std::fmt;

use volery_channel::{Hello, Link, Role};
use volery_pcg::Security;
use volery_psi::Variant;
use volery_psi::choice::{Protocol, Task};
use volery_psi::vole::Form;

/// The names under which the handshake compares the settings: what the sides get.
pub const RESULT: &str = "--result";
/// Who learns the result.
pub const BOTH: &str = "--both";
/// The rules of both sides.
pub const KEYS: &str = "the key columns";
/// The progress of an earlier attempt.
pub const PROGRESS: &str = "the progress of the run (--resume)";

/// The result for the matching rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The receiver gets its matching rows.
    Psi,
    /// The receiver gets them with columns of the sender.
    Lookup,
}

impl Verb {
    /// The subcommand's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Psi => "psi",
            Self::Lookup => "lookup",
        }
    }
}

/// A protocol by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Name {
    /// The fastest for the sizes and the link.
    #[default]
    Auto,
    /// VOLE-PSI.
    Vole,
    /// VOLE-PSI with the least communication.
    VoleLow,
    /// OT extension.
    Kkrt,
    /// OT extension with the parameters of its paper.
    KkrtPaper,
    /// Diffie-Hellman.
    Dh,
    /// Circuit-PSI.
    Circuit,
    /// Circuit-PSI with the least communication.
    CircuitLow,
    /// Queries to a server that prepared its table.
    Served,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Auto,
        Self::Vole,
        Self::VoleLow,
        Self::Kkrt,
        Self::KkrtPaper,
        Self::Dh,
        Self::Circuit,
        Self::CircuitLow,
        Self::Served,
    ];

    /// Their names and help, in the same order.
    pub(crate) const ALLOWED: &[(&str, &str)] = &[
        (
            "auto",
            "The fastest of vole, dh and kkrt that has the --security asked for, by the sizes of both sets and the link; the parties measure the link unless --link describes it",
        ),
        ("vole", "VOLE-PSI"),
        (
            "vole-low",
            "VOLE-PSI with the least communication, on dual LPN with a published code: semi-honest, and only by this name",
        ),
        (
            "kkrt",
            "OT extension, semi-honest: about 102 bytes per item (vole: 27), no LPN assumption",
        ),
        (
            "kkrt-paper",
            "The same with the parameters of its paper, for reproduction",
        ),
        (
            "dh",
            "Diffie-Hellman: fastest for a few hundred keys; at most 16384 keys a side, except for --result count; not with --both",
        ),
        (
            "circuit",
            "Circuit-PSI, for every --result but rows: semi-honest",
        ),
        (
            "circuit-low",
            "The same with the least communication, on dual LPN with a published code, and only by this name",
        ),
        (
            "served",
            "Queries to a 'volery serve', which prepared a large table once: 64 bytes a key; the role is receiver",
        ),
    ];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Vole => "vole",
            Self::VoleLow => "vole-low",
            Self::Kkrt => "kkrt",
            Self::KkrtPaper => "kkrt-paper",
            Self::Dh => "dh",
            Self::Circuit => "circuit",
            Self::CircuitLow => "circuit-low",
            Self::Served => "served",
        }
    }

    /// The protocol with this security; `None` for a choice, or if there is none.
    pub(crate) fn protocol(self, security: Security) -> Option<Protocol> {
        match (self, security) {
            (Self::Auto | Self::Circuit | Self::CircuitLow | Self::Served, _) => None,
            (Self::Vole, Security::Malicious) => Some(Protocol::Vole(Form::Malicious)),
            (Self::Vole, _) => Some(Protocol::Vole(Form::Fast)),
            (Self::Dh, _) => Some(Protocol::Dh),
            (_, Security::Malicious) => None,
            (Self::VoleLow, _) => Some(Protocol::Vole(Form::Low)),
            (Self::Kkrt, _) => Some(Protocol::Kkrt(Variant::Kkrt)),
            (Self::KkrtPaper, _) => Some(Protocol::Kkrt(Variant::KkrtPaper)),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A combination of settings that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {what}")]
pub struct Wrong {
    /// The option at fault, as on the command line.
    pub option: &'static str,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: std::borrow::Cow<'static, str>,
}

/// The settings of a run that both sides share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The result.
    pub verb: Verb,
    /// This side's role.
    pub role: Role,
    /// The protocol.
    pub name: Name,
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
    ///
    /// # Errors
    /// The combination that does not exist.
    pub fn new(
        verb: Verb,
        role: Role,
        name: Name,
        security: Option<Security>,
        both: bool,
        link: Option<Link>,
    ) -> Result<Self, Wrong> {
        let wrong = |option, what: String, hint: &'static str| {
            let hint = hint.into();
            Err(Wrong { option, what, hint })
        };
        if link.is_some() && name != Name::Auto {
            let what = format!("--protocol {name} is the same on every link");
            return wrong("--link", what, "only auto chooses by the link");
        }
        if matches!(name, Name::Circuit | Name::CircuitLow) {
            let what = format!("{name} gives no rows");
            let hint = "choose --protocol auto, vole, vole-low, kkrt or dh; --result count and others of psi are for circuit-PSI";
            return wrong("--protocol", what, hint);
        }
        if both && name == Name::Dh {
            let what = "dh gives the result to the receiver only".to_owned();
            let hint = "remove --both, or choose --protocol auto, vole, vole-low or kkrt";
            return wrong("--both", what, hint);
        }
        if name == Name::Served {
            let (option, what, hint) = match (verb, role, both) {
                (Verb::Lookup, _, _) => (
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
                return wrong(option, what.to_owned(), hint);
            }
        }
        let malicious = matches!(name, Name::Auto | Name::Vole | Name::Dh | Name::Served);
        let security = match security {
            Some(Security::Malicious) if !malicious => {
                let what = format!("{name} is secure against semi-honest peers only");
                let hint = "choose --protocol auto, vole or dh for security against malicious peers, or --security semi-honest";
                return wrong("--security", what, hint);
            }
            Some(Security::Malicious) if both => {
                let what = "malicious security is not available with --both: the sender would have to trust the receiver's report of the result";
                let hint = "remove --both, or use --security semi-honest on both sides";
                return wrong("--security", what.to_owned(), hint);
            }
            Some(security) => security,
            None if malicious && !both => Security::Malicious,
            None => Security::SemiHonest,
        };
        Ok(Self {
            verb,
            role,
            name,
            security,
            both,
            link,
        })
    }

    /// What a protocol is chosen for: sets of sender and receiver of these sizes.
    #[must_use]
    pub const fn task(&self, [sender_items, receiver_items]: [u64; 2]) -> Task {
        Task {
            sender_items,
            receiver_items,
            security: self.security,
            both: self.both,
            search: matches!(self.verb, Verb::Lookup),
        }
    }

    /// Whether this side gets rows.
    #[must_use]
    pub fn gets_rows(&self) -> bool {
        self.role == Role::Receiver || self.both
    }

    /// The first message of this side; the peer's must be the same. `keys` describes the rules
    /// without the names of columns.
    #[must_use]
    pub fn hello(&self, keys: &str) -> Hello {
        let both = if self.both { "yes" } else { "no" };
        let mut fields = Vec::new();
        if self.verb == Verb::Psi {
            fields.push((RESULT, "rows".to_owned()));
        }
        fields.extend([
            ("--protocol", self.name.to_string()),
            (BOTH, both.to_owned()),
            ("security", self.security.to_string()),
        ]);
        if self.name == Name::Auto {
            let link = self.link.map_or("measured".to_owned(), |link| {
                format!("{} bit/s, {} s", link.bits_per_second, link.round_trip)
            });
            fields.push(("--link", link));
        }
        fields.push((KEYS, keys.to_owned()));
        Hello {
            protocol: self.verb.name(),
            role: self.role.name(),
            fields,
        }
    }
}
