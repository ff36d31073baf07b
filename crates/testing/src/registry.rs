//! The protocol registry: the list of all protocols.

mod apps;
mod ot;
mod pcg;
mod psi;

use volery_channel::{Hello, SessionId, handshake};

use crate::{Model, Protocol};

/// Every protocol of the library that uses a channel, from the channel up.
///
/// Private parts that are reached only through a protocol are listed as that protocol: the trees
/// and the check of `SoftSpoken` as `softspoken`; the rounds, the check, the COT buffer and the
/// bases of the streams as `cot` and `vole`; the agreement and the session of a search as
/// `intersection` and `search`.
pub fn registry() -> Vec<Protocol> {
    let mut registry = vec![hello()];
    registry.extend(ot::all());
    registry.extend(pcg::all());
    registry.extend(psi::all());
    registry.extend(apps::all());
    registry
}

/// The handshake. It does not authenticate: a changed nonce gives two session ids, and everything
/// keyed by them fails later.
fn hello() -> Protocol {
    let party = |role: &'static str, nonce: u8| {
        move |channel: &mut volery_channel::Channel| {
            let fields = vec![("ring", "fp61".to_owned()), ("count", "1000".to_owned())];
            let hello = Hello { protocol: "vole", role, fields };
            handshake(channel, &hello, [nonce; 32])
        }
    };
    Protocol::new(
        "handshake",
        Model::SemiHonest,
        party("sender", 1),
        party("receiver", 2),
        |left: &SessionId, right: &SessionId| left == right,
    )
}
