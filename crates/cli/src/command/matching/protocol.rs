//! The protocol of a run: the one that the options name, or with `auto` the fastest for the two
//! sizes and the link, on which the parties agree after the handshake.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum as _;
use volery_channel::link::{Side, estimate};
use volery_channel::{Channel, Error as ChannelError, Hello, Link, Role, SessionId, handshake};
use volery_pcg::Security;
use volery_psi::Variant;
use volery_psi::choice::{Candidate, Protocol, Task, candidates};
use volery_psi::params::MAX_ITEMS;
use volery_psi::vole::Form;
use volery_tables::Records;

use super::{Verb, key_types};
use crate::exit::Failure;
use crate::negotiation::why;
use crate::randomness::fresh_prg;

/// The names under which the handshake compares the settings.
const BOTH: &str = "--both";
const KEY_TYPES: &str = "the types of the key columns";

/// Least nanoseconds for each item, which bounds the time spent on measuring the link.
const EACH: u64 = 100;

/// A protocol by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Name {
    /// The fastest of vole, dh and kkrt that has the --security asked for, by the sizes of both
    /// sets and the link; the parties measure the link unless --link describes it
    #[default]
    Auto,
    /// VOLE-PSI
    Vole,
    /// VOLE-PSI with the least communication, on dual LPN with a code of this project:
    /// semi-honest, and only by this name
    VoleLow,
    /// OT extension: semi-honest, five times as many bytes
    Kkrt,
    /// The same with the parameters of its paper, for reproduction
    KkrtPaper,
    /// Diffie-Hellman, for at most 16384 keys a side: for small sets the fastest; not with --both
    Dh,
}

impl Name {
    /// The protocol with this security; `None` for a choice, or if there is none.
    fn protocol(self, security: Security) -> Option<Protocol> {
        match (self, security) {
            (Self::Auto, _) => None,
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
        let value = self.to_possible_value().expect("no name is hidden");
        f.pad(value.get_name())
    }
}

/// The settings of a run that both sides must share, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    name: Name,
    pub(crate) security: Security,
    pub(crate) both: bool,
    link: Option<Link>,
}

impl Settings {
    /// From the options; without `security` it is malicious where the protocol and `both` allow it.
    ///
    /// # Errors
    /// A usage error that names the wrong option.
    pub(crate) fn new(
        name: Name,
        security: Option<Security>,
        both: bool,
        link: Option<Link>,
    ) -> Result<Self, Failure> {
        if link.is_some() && name != Name::Auto {
            let what = format_args!("--protocol {name} is the same on every link");
            return Err(Failure::usage("--link", what).hint("only auto chooses by the link"));
        }
        if both && name == Name::Dh {
            let what = "dh gives the result to the receiver only";
            return Err(Failure::usage("--both", what)
                .hint("remove --both, or choose --protocol auto, vole, vole-low or kkrt"));
        }
        let malicious = matches!(name, Name::Auto | Name::Vole | Name::Dh);
        let security = match security {
            Some(Security::Malicious) if !malicious => {
                let what = format_args!("{name} is secure against semi-honest peers only");
                return Err(Failure::usage("--security", what).hint(
                    "choose --protocol auto, vole or dh for security against malicious peers, or --security semi-honest",
                ));
            }
            Some(Security::Malicious) if both => {
                return Err(Failure::usage(
                    "--security",
                    "malicious security is not available with --both: the sender would have to trust the receiver's report of the result",
                )
                .hint("remove --both, or use --security semi-honest on both sides"));
            }
            Some(security) => security,
            None if malicious && !both => Security::Malicious,
            None => Security::SemiHonest,
        };
        Ok(Self {
            name,
            security,
            both,
            link,
        })
    }

    /// The first message of this side; the peer's must be the same.
    fn hello(&self, verb: Verb<'_>, role: Role, records: &Records) -> Hello {
        let both = if self.both { "yes" } else { "no" };
        let mut fields = vec![
            ("--protocol", self.name.to_string()),
            (BOTH, both.to_owned()),
            ("security", self.security.to_string()),
        ];
        if self.name == Name::Auto {
            let link = self.link.map_or("measured".to_owned(), |link| {
                format!("{} bit/s, {} s", link.bits_per_second, link.round_trip)
            });
            fields.push(("--link", link));
        }
        fields.push((KEY_TYPES, key_types(records)));
        Hello {
            protocol: verb.name(),
            role: role.name(),
            fields,
        }
    }

    /// The handshake, and the protocol. For a choice each party tells its number of keys, and they
    /// measure the link.
    ///
    /// # Errors
    /// Those of the channel.
    pub(crate) fn settle(
        &self,
        verb: Verb<'_>,
        role: Role,
        records: &Records,
        channel: &mut Channel,
    ) -> Result<(SessionId, Agreed), Failure> {
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        let hello = self.hello(verb, role, records);
        let session = handshake(channel, &hello, nonce).map_err(disagreement)?;
        if let Some(protocol) = self.name.protocol(self.security) {
            let choice = None;
            return Ok((session, Agreed { protocol, choice }));
        }
        let ours = records.keys().len() as u64;
        if ours > MAX_ITEMS {
            let most = MAX_ITEMS;
            return Err(volery_psi::Error::TooMany { items: ours, most }.into());
        }
        channel.send(&ours.to_le_bytes())?;
        channel.flush()?;
        let mut theirs = [0; 8];
        channel.recv(&mut theirs)?;
        let theirs = u64::from_le_bytes(theirs);
        if theirs > MAX_ITEMS {
            let what = "it announced a set larger than the maximum";
            return Err(ChannelError::PeerMisbehaved(what).into());
        }
        let link = match self.link {
            Some(link) => link,
            None => {
                let side = match role {
                    Role::Sender => Side::IsMeasured,
                    Role::Receiver => Side::Measures,
                };
                let work = Duration::from_nanos((ours + theirs) * EACH);
                estimate(channel, side, work)?
            }
        };
        let (sender_items, receiver_items) = match role {
            Role::Sender => (ours, theirs),
            Role::Receiver => (theirs, ours),
        };
        let task = Task {
            sender_items,
            receiver_items,
            security: self.security,
            both: self.both,
            search: matches!(verb, Verb::Lookup { .. }),
        };
        let candidates = candidates(&task, link);
        let best = candidates.first().expect("the settings were checked");
        let protocol = best.protocol;
        let choice = Some(Choice {
            task,
            link,
            candidates,
        });
        Ok((session, Agreed { protocol, choice }))
    }
}

/// The remedy for settings that differ between the two sides.
fn disagreement(error: ChannelError) -> Failure {
    let hint = match &error {
        ChannelError::Mismatch { field, .. } if field == KEY_TYPES => {
            "name the same number of key columns on both sides, in the same order; --key NAME:TYPE reads a column as another type"
        }
        ChannelError::Mismatch { field, .. } if field == BOTH => {
            "the sender gets the result only if both sides set --both"
        }
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}

/// The protocol, and the reason if it was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) protocol: Protocol,
    pub(crate) choice: Option<Choice>,
}

/// The candidates, and what they were compared for.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) task: Task,
    link: Link,
    /// The fastest first.
    candidates: Vec<Candidate>,
}

impl Choice {
    /// One line: sizes and link, the predicted time, and the others.
    pub(crate) fn why(&self) -> String {
        let Task {
            sender_items,
            receiver_items,
            security,
            ..
        } = self.task;
        let all = self.candidates.iter();
        let predicted = why(self.link, all.map(|one| (one.protocol.name(), one.seconds)));
        format!("{security}, {sender_items} and {receiver_items} keys, {predicted}")
    }

    /// For a report.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let predicted: Vec<_> = self
            .candidates
            .iter()
            .map(|one| {
                serde_json::json!({
                    "protocol": one.protocol.name(),
                    "seconds": one.seconds,
                    "bytes": one.bytes,
                })
            })
            .collect();
        serde_json::json!({
            "why": self.why(),
            "bits_per_second": self.link.bits_per_second as u64,
            "round_trip_seconds": self.link.round_trip,
            "predicted": predicted,
        })
    }
}
