//! Both parties compare what they are about to start: a mistake of a caller is then called by its
//! name, and not a deviation of the peer.
//!
//! Cost: 32 bytes from each party, both at once; no party waits for them alone.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_primitives::ro::RandomOracle;

use crate::{Kind, Plan};

/// The two ends of a correlation, by what they hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `delta` or `x`.
    Key,
    /// `u`.
    Value,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Key => "the holder of delta or x",
            Self::Value => "the holder of u",
        }
    }
}

/// Sends the kind, the end, and hashes of the session and of the plan; compares those of the peer
/// before the next byte.
pub(crate) fn start(
    end: End,
    session: SessionId,
    plan: &Plan,
    channel: &mut Channel,
) -> Result<()> {
    let kind = match plan.kind() {
        Kind::Cot => "cot",
        Kind::Vole(field) => field.name(),
    };
    let mut oracle = RandomOracle::new("volery start: session");
    oracle.absorb(session.as_bytes());
    let none = SessionId::from_bytes([0; 32]);
    let mut of_plan = RandomOracle::new("volery start: plan");
    // All of a name that is longer than the letters below.
    of_plan.absorb(kind.as_bytes());
    let of_plan = plan.session(of_plan, none, "");
    let mut ours = [0; 32];
    for (byte, letter) in ours[..8].iter_mut().zip(kind.bytes()) {
        *byte = letter;
    }
    ours[8] = end as u8;
    ours[9..17].copy_from_slice(&oracle.finish32()[..8]);
    ours[17..].copy_from_slice(&of_plan.as_bytes()[..15]);
    let total = plan.total().map_or("any number".to_owned(), |total| total.to_string());
    let plan = format!("{}, {}, for {total}", plan.describe(), plan.security());
    channel.agree(&ours, move |theirs| {
        let differ = |field: &str, ours: String, theirs: String| {
            // no mutant: the mutants are those of the conditions below
            Err(Error::Mismatch { field: field.to_owned(), ours, theirs })
        };
        let another = || "another one".to_owned();
        // mutant(start-kind): false
        if ours[..8] != theirs[..8] {
            let text = theirs[..8].iter().take_while(|byte| byte.is_ascii_alphanumeric());
            let theirs = text.map(|byte| char::from(*byte)).collect();
            return differ("the kind of correlation", kind.to_owned(), theirs);
        }
        // mutant(start-session): false
        if ours[9..17] != theirs[9..17] {
            let field = "the session, or the number of objects started on it";
            return differ(field, "this one".to_owned(), another());
        }
        // mutant(start-end): false
        if ours[8] == theirs[8] {
            return differ("role", end.name().to_owned(), end.name().to_owned());
        }
        // mutant(start-plan): false
        if ours[17..] != theirs[17..] {
            return differ("the plan", plan, another());
        }
        Ok(())
    })
}
