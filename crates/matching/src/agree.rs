//! Steps 1 to 3 of a run: the two sides compare settings and progress, toss the key of the buckets,
//! and compare sizes. What they agree on is the [`Manifest`].

use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, handshake};
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::lookup::MAX_VALUE;
use volery_psi::params::MAX_ITEMS;
use volery_tables::PayloadSchema;

use crate::error::{Result, misbehaved};
use crate::keys::FRAME;
use crate::manifest::{Manifest, Own, Terms, VERSION};
use crate::settings::PROGRESS;
use crate::side::MAX_BUCKETS;
use crate::task::Task;

/// The longest line of names and types of the payload, in bytes.
const LONGEST_LINE: usize = 1 << 16;

/// A side asks for shards by its rows, whose keys it has not counted yet: the most rows of a key,
/// on average, for which that is accepted.
const ROWS_OF_A_KEY: u32 = 16;

/// What a side brings.
pub(crate) struct Agreeing<'a> {
    pub(crate) task: &'a Task,
    /// Types and normalisers of the keys.
    pub(crate) keys: &'a str,
    pub(crate) own: Own,
    /// The commitment to this side's table.
    pub(crate) commitment: [u8; 32],
    /// Sender of a lookup: its columns in a line, and the bytes of the longest payload.
    pub(crate) payload: Option<(String, usize)>,
    /// The least number of buckets.
    pub(crate) least: u32,
    /// What an earlier attempt agreed on.
    pub(crate) earlier: Option<&'a Manifest>,
    /// Whether it began a part.
    pub(crate) begun: bool,
    /// The terms of a run of several workers, the commitments still empty.
    pub(crate) terms: Option<Terms>,
    /// The number of shards, if this side asks for it; both do then.
    pub(crate) shards: Option<u32>,
}

/// The sides after step 1.
pub(crate) struct Met {
    pub(crate) session: SessionId,
    /// Whether both have the same progress.
    pub(crate) resumed: bool,
    pub(crate) buckets: u32,
    /// With the commitments.
    terms: Option<Terms>,
}

impl Agreeing<'_> {
    /// The handshake, and step 1.
    pub(crate) fn meet(&self, rng: &mut Prg, channel: &mut Channel) -> Result<Met> {
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let session = handshake(channel, &self.hello(), nonce)?;
        let id = self.earlier.map_or([0; 32], Manifest::id);
        let least = match self.earlier {
            Some(earlier) => self.least.max(earlier.buckets),
            None => self.least,
        };
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
        // The handshake has compared the texts.
        // mutant(match-asked): false
        if self.shards.is_some_and(|shards| their_least != shards) {
            return Err(misbehaved(
                "it asks for another number of shards than --shards",
            ));
        }
        let resumed = self.earlier.is_some() && theirs == id;
        // mutant(match-progress): false
        if !resumed && (self.begun || their_begun == [1]) {
            let ours = if self.begun {
                "the progress of a run"
            } else {
                "none"
            };
            return Err(ChannelError::Mismatch {
                field: PROGRESS.to_owned(),
                ours: ours.to_owned(),
                theirs: "another, or none".to_owned(),
            }
            .into());
        }
        let mut met = Met {
            session,
            resumed,
            buckets: match self.earlier {
                Some(earlier) if resumed => earlier.buckets,
                _ => least.max(their_least).max(1),
            },
            terms: self.terms.clone(),
        };
        if let Some(terms) = met.terms.as_mut().filter(|_| !resumed) {
            // Before the key is tossed. They are never opened between the sides: they are a record
            // for a dispute about which table took part.
            let ours = self.commitment;
            let mut theirs = [0; 32];
            channel.send(&ours)?;
            channel.recv(&mut theirs)?;
            terms.commitments = match self.task.role() {
                Role::Sender => [ours, theirs],
                Role::Receiver => [theirs, ours],
            };
        }
        Ok(met)
    }

    fn hello(&self) -> Hello {
        let mut hello = self.task.hello(self.keys);
        if let Some(terms) = &self.terms {
            let fields = [
                ("--run", terms.run.clone()),
                ("--workers", terms.workers.to_string()),
                (
                    "--shards",
                    self.shards
                        .map_or("by size".to_owned(), |shards| shards.to_string()),
                ),
            ];
            hello.fields.extend(fields);
        }
        hello
    }

    /// Step 2: the key of the buckets.
    pub(crate) fn key(&self, met: &Met, rng: &mut Prg, channel: &mut Channel) -> Result<[u8; 32]> {
        match met.buckets {
            // It divides nothing, and names the run.
            1 => Ok(*met.session.as_bytes()),
            _ => toss(self.task.role(), met.session, rng, channel),
        }
    }

    /// Step 3.
    pub(crate) fn settle(
        self,
        met: Met,
        key: [u8; 32],
        ours: &[u64],
        channel: &mut Channel,
    ) -> Result<Manifest> {
        for size in ours {
            channel.send(&size.to_le_bytes())?;
        }
        let lookup = self.task.is_lookup();
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
            sizes.push(match self.task.role() {
                Role::Sender => [ours, theirs],
                Role::Receiver => [theirs, ours],
            });
        }
        let payload = match (lookup, self.task.role()) {
            (false, _) => None,
            (true, Role::Sender) => Some(self.payload.expect("a sender of a lookup has columns")),
            (true, Role::Receiver) => Some(recv_payload(channel)?),
        };
        let manifest = Manifest {
            version: VERSION,
            own: self.own,
            key,
            buckets: met.buckets,
            sizes,
            payload,
            workers: met.terms,
        };
        if let (Some(terms), None) = (&self.terms, self.shards) {
            // Each shard is filled up, and a malicious receiver can test keys with what fills it
            // up: many shards of a small set would make room for many.
            let keys = manifest.sizes.iter().flatten().copied().max();
            let shards = terms.shards(keys.unwrap_or(0));
            // mutant(match-shards): false
            if manifest.buckets > shards.saturating_mul(ROWS_OF_A_KEY) {
                return Err(misbehaved(
                    "it asks for too many shards for these numbers of keys; if a table has many rows of each key, give --shards on both sides",
                ));
            }
        }
        Ok(manifest)
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
    let [sender, receiver] = match role {
        Role::Sender => [ours, theirs],
        Role::Receiver => [theirs, ours],
    };
    Ok(RandomOracle::new("volery matching: key of the buckets")
        .absorb(session.as_bytes())
        .absorb(&sender)
        .absorb(&receiver)
        .finish32())
}
