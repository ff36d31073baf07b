//! Steps 1 to 3 of a run: the two sides compare settings and progress, toss the key of the buckets,
//! and compare sizes. What they agree on is the [`Agreement`].

use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, handshake};
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::lookup::MAX_VALUE;
use volery_psi::params::MAX_ITEMS;
use volery_tables::PayloadSchema;

use crate::agreement::{Agreement, LocalManifest, MAX_BUCKETS};
use crate::error::{Result, misbehaved};
use crate::keys::FRAME;
use crate::settings::PROGRESS;

/// The longest line of names and types of the payload, in bytes.
const LONGEST_LINE: usize = 1 << 16;

/// The proposal of a side.
pub struct Proposal {
    /// The role of this side.
    pub role: Role,
    /// Its first message.
    pub hello: Hello,
    /// The facts that it keeps to itself.
    pub own: LocalManifest,
    /// Whether the sender has payload.
    pub lookup: bool,
    /// Sender of a lookup: its columns in a line, and the bytes of the longest payload.
    pub payload: Option<(String, usize)>,
    /// Receiver of a lookup: how many names it has for these columns; 0 if it keeps the sender's.
    pub names: usize,
    /// The least number of buckets.
    pub least: u32,
    /// The name and the buckets that an earlier attempt agreed on.
    pub earlier: Option<([u8; 32], u32)>,
    /// Whether it began a part.
    pub begun: bool,
}

/// The sides after step 1.
pub struct HandshakeResult {
    /// The session.
    pub session: SessionId,
    /// Whether both have the same progress.
    pub resumed: bool,
    /// Buckets of each rule.
    pub buckets: u32,
    /// The least number of them that the peer asked for.
    pub their_least: u32,
}

impl Proposal {
    /// The handshake, and step 1.
    ///
    /// # Errors
    /// If the channel fails, or the sides differ in a setting or in their progress.
    pub fn meet(&self, rng: &mut Prg, channel: &mut Channel) -> Result<HandshakeResult> {
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let session = handshake(channel, &self.hello, nonce)?;
        let (id, earlier) = self.earlier.unwrap_or_default();
        let least = self.least.max(earlier);
        channel.send(&id)?;
        channel.send(&[self.begun.into()])?;
        channel.send(&least.to_le_bytes())?;
        let (mut theirs, mut their_begun, mut their_least) = ([0; 32], [0], [0; 4]);
        channel.recv(&mut theirs)?;
        channel.recv(&mut their_begun)?;
        channel.recv(&mut their_least)?;
        let their_least = u32::from_le_bytes(their_least);
        // mutant(match-numbers): false
        if their_least > MAX_BUCKETS || their_begun[0] > 1 {
            return Err(misbehaved("its settings message is malformed"));
        }
        let resumed = self.earlier.is_some() && theirs == id;
        // mutant(match-progress): false
        if !resumed && (self.begun || their_begun == [1]) {
            let ours = if self.begun { "the progress of a run" } else { "none" };
            return Err(ChannelError::Mismatch {
                field: PROGRESS.to_owned(),
                ours: ours.to_owned(),
                theirs: "another, or none".to_owned(),
            }
            .into());
        }
        let buckets = match resumed {
            true => earlier,
            false => least.max(their_least).max(1),
        };
        Ok(HandshakeResult { session, resumed, buckets, their_least })
    }

    /// Step 2: the key of the buckets.
    ///
    /// # Errors
    /// If the channel fails, or the peer opens another share than it committed to.
    pub fn key(
        &self,
        met: &HandshakeResult,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<[u8; 32]> {
        match met.buckets {
            // It divides nothing, and names the run.
            1 => Ok(*met.session.as_bytes()),
            _ => toss(self.role, met.session, rng, channel),
        }
    }

    /// Step 3, with this side's number of distinct keys by each rule.
    ///
    /// # Errors
    /// If the channel fails, a number or the columns of the peer are no such, or the receiver has
    /// names for another number of columns.
    ///
    /// # Panics
    /// If this is the sender of a lookup without columns.
    pub fn settle(
        self,
        met: &HandshakeResult,
        key: [u8; 32],
        ours: &[u64],
        channel: &mut Channel,
    ) -> Result<Agreement> {
        for size in ours {
            channel.send(&size.to_le_bytes())?;
        }
        let lookup = self.lookup;
        if let (true, Some((line, longest))) = (lookup, &self.payload) {
            channel.send(&(line.len() as u32).to_le_bytes())?;
            channel.send(line.as_bytes())?;
            channel.send(&(*longest as u32).to_le_bytes())?;
        }
        let mut sizes = Vec::new();
        for &ours in ours {
            let mut theirs = [0; 8];
            channel.recv(&mut theirs)?;
            let theirs = u64::from_le_bytes(theirs);
            // mutant(match-size): false
            if theirs > MAX_ITEMS.saturating_mul(met.buckets.into()) {
                return Err(misbehaved("it announced a set larger than the maximum"));
            }
            sizes.push(self.role.sides([ours, theirs]));
        }
        let payload = match (lookup, self.role) {
            (false, _) => None,
            (true, Role::Sender) => Some(self.payload.expect("a sender of a lookup has columns")),
            (true, Role::Receiver) => Some(recv_payload(channel)?),
        };
        let agreement = Agreement::new(self.own, (key, met.buckets), sizes, payload);
        agreement.check_names(self.names)?;
        Ok(agreement)
    }
}

/// The sender's columns in a line, and the bytes of its longest payload.
fn recv_payload(channel: &mut Channel) -> Result<(String, usize)> {
    let number = |channel: &mut Channel| -> Result<usize> {
        let mut number = [0; 4];
        channel.recv(&mut number)?;
        Ok(u32::from_le_bytes(number) as usize)
    };
    let length = number(channel)?;
    // mutant(match-line): false
    if length > LONGEST_LINE {
        return Err(misbehaved("its list of columns is too long"));
    }
    let mut line = vec![0; length];
    channel.recv(&mut line)?;
    let longest = number(channel)?;
    let line =
        String::from_utf8(line).map_err(|_| misbehaved("its list of columns is not UTF-8"))?;
    // mutant(match-longest): false
    if longest + FRAME > MAX_VALUE {
        return Err(misbehaved("it announced values longer than the maximum"));
    }
    let malformed = |_| misbehaved("its list of columns is malformed");
    PayloadSchema::parse(&line).map_err(malformed)?;
    Ok((line, longest))
}

/// A key that neither party chose.
fn toss(role: Role, session: SessionId, rng: &mut Prg, channel: &mut Channel) -> Result<[u8; 32]> {
    let commit = |role: Role, share: &[u8; 32]| {
        RandomOracle::new("volery matching: commitment")
            .absorb(session.as_bytes())
            .absorb(role.name().as_bytes())
            .absorb(share)
            .finish32()
    };
    let mut ours = [0; 32];
    rng.fill_bytes(&mut ours);
    channel.send(&commit(role, &ours))?;
    let mut committed = [0; 32];
    channel.recv(&mut committed)?;
    channel.send(&ours)?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    // mutant(match-toss): false
    if committed != commit(role.other(), &theirs) {
        return Err(misbehaved("its opening does not match its commitment"));
    }
    let [sender, receiver] = role.sides([ours, theirs]);
    Ok(RandomOracle::new("volery matching: key of the buckets")
        .absorb(session.as_bytes())
        .absorb(&sender)
        .absorb(&receiver)
        .finish32())
}
