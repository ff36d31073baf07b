//! The names of protocols on a command line.

use std::fmt;
use std::time::Duration;

use volery_channel::link::{Side, estimate};
use volery_channel::{Channel, Link, Role};
use volery_pcg::Security;
use volery_psi::choice::{Choice, decide};
use volery_psi::matching::{Output, Protocol, Task, named};
use volery_psi::vole::Form;

use crate::error::Result;

/// A protocol by its name on the command line: one of the list of `volery_psi`, `auto` or
/// `served`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProtocolChoice(&'static str);

#[allow(
    non_upper_case_globals,
    reason = "the values of an enumeration that the list of protocols extends"
)]
impl ProtocolChoice {
    /// The fastest protocol, by the sizes of both sets and the link.
    pub const Auto: Self = Self("auto");
    /// VOLE-PSI.
    pub const Vole: Self = Self("vole");
    /// VOLE-PSI with the least communication.
    pub const VoleLow: Self = Self("vole-low");
    /// BaRK-OPRF.
    pub const Kkrt: Self = Self("kkrt");
    /// BaRK-OPRF with the parameters of its paper.
    pub const KkrtPaper: Self = Self("kkrt-paper");
    /// Diffie-Hellman.
    pub const Dh: Self = Self("dh");
    /// Circuit-PSI.
    pub const Circuit: Self = Self("circuit");
    /// Circuit-PSI with the least communication.
    pub const CircuitLow: Self = Self("circuit-low");
    /// Queries to a server.
    pub const Served: Self = Self("served");
}

impl ProtocolChoice {
    /// All names with their help: `auto`, the protocols in the order of their list, `served`.
    pub(crate) const ALLOWED: &[(&str, &str)] = &[
        (
            "auto",
            "The fastest of vole, dh and kkrt that provides the requested --security, given the sizes of both sets and the link; the parties measure the link unless --link describes it",
        ),
        ("vole", "VOLE-PSI"),
        (
            "vole-low",
            "VOLE-PSI with the least communication, on dual LPN with a published code: semi-honest; used only when it is named",
        ),
        (
            "kkrt",
            "OT extension, semi-honest: about 102 bytes per item (vole: 27), no LPN assumption",
        ),
        ("kkrt-paper", "The same with the parameters of its paper, for reproduction"),
        (
            "dh",
            "Diffie-Hellman: fastest for a few hundred keys; at most 16384 keys a side, except for --result count; not with --both",
        ),
        ("circuit", "Circuit-PSI, for every --result but rows: semi-honest"),
        (
            "circuit-low",
            "The same with the least communication, on dual LPN with a published code; used only when it is named",
        ),
        (
            "served",
            "Queries to a 'volery serve' server, which prepares a large table in advance: 64 bytes a key; the role must be receiver",
        ),
    ];

    /// All names, in this order.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALLOWED.iter().map(|(name, _)| Self(name))
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The name for [`decide`]: none for a choice.
    pub(crate) fn given(self) -> Option<&'static str> {
        (self != Self::Auto).then_some(self.0)
    }

    /// The form of a protocol of this name that comes in two.
    pub fn form(self) -> Form {
        match self {
            Self::CircuitLow => Form::Low,
            _ => Form::Fast,
        }
    }

    /// The protocol of a task, and why if it is to be chosen: for a link, which this side and the
    /// peer measure unless it is given. `each`: the least nanoseconds for each item, which bounds
    /// the time spent on measuring.
    pub(crate) fn decide(
        self,
        task: &Task,
        (link, role, each): (Option<Link>, Role, u64),
        channel: &mut Channel,
    ) -> Result<(Protocol, Option<Choice>)> {
        decide(self.given(), task, || match link {
            Some(link) => Ok(link),
            None => {
                let side = match role {
                    Role::Sender => Side::IsMeasured,
                    Role::Receiver => Side::Measures,
                };
                let items = task.sender_items + task.receiver_items;
                Ok(estimate(channel, side, Duration::from_nanos(items * each))?)
            }
        })
    }

    /// The protocol of this name that gives an output with this security.
    pub(crate) fn protocol(self, security: Security, output: &Output) -> Option<Protocol> {
        named(self.0, security, output)
    }

    /// The names of the protocols that workers run for an output.
    pub fn of_workers(output: &Output) -> String {
        let all = Self::all().filter(|name| {
            let protocol = name.protocol(Security::SemiHonest, output);
            protocol.is_some_and(|one| one.is_for_workers())
        });
        all.map(Self::name).collect::<Vec<_>>().join(" or ")
    }

    /// The name that a run with workers has in place of this one, and the reason if it differs.
    /// Both sides know it before they meet, and so before they know sizes or a link: of the
    /// protocols that workers run, one at most may be a candidate.
    pub(crate) fn for_workers(self, task: Task) -> (Self, Option<String>) {
        if self != Self::Auto {
            return (self, None);
        }
        let task = Task { with_workers: true, ..task };
        let (protocol, _) = decide(None, &task, || Err("two candidates for workers"))
            .expect("workers have one protocol for each output");
        let name = protocol.name();
        let why = format!(
            "--protocol auto is {name} with workers, for all sizes and links: shards are large, and \
             both sides fix the protocol before they meet"
        );
        (Self(name), Some(why))
    }
}

impl Default for ProtocolChoice {
    fn default() -> Self {
        Self::Auto
    }
}

impl fmt::Debug for ProtocolChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProtocolChoice({})", self.0)
    }
}

impl fmt::Display for ProtocolChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use volery_psi::matching::PROTOCOLS;

    use super::*;

    #[test]
    fn all_protocols_have_a_name_here() {
        let mut names = vec!["auto"];
        names.extend(PROTOCOLS.map(|protocol| protocol.name()));
        names.push("served");
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(*name));
        assert!(ProtocolChoice::all().map(ProtocolChoice::name).eq(names));
    }
}
