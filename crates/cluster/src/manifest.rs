//! The manifest of a run that several workers on each side share, and the secrets of its driver.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use volery_channel::{Error as ChannelError, Role};
use volery_matching::steps::{Agreement, hex, parse};
use volery_matching::totals::{self, Noise};
use volery_matching::{MAX_BUCKETS, Operation, Parameters, ProtocolChoice, Result, Settings};
use volery_pcg::Security;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::circuit;
use zeroize::{Zeroize as _, Zeroizing};

use crate::task::Task;

/// The name under which the handshake compares manifests.
pub const MANIFEST: &str = "the manifest of the run";

/// The most keys of a shard, on average, and the fewest for the sake of even work.
const SHARD: u64 = 1 << 20;
const SMALL: u64 = 1 << 14;

/// The manifest: the same on both sides but for the facts that one side alone knows. A side's
/// workers get it as it is; the rest is in [`Secrets`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    #[serde(flatten)]
    agreement: Agreement,
    workers: Option<WorkerSettings>,
}

impl Deref for Manifest {
    type Target = Agreement;

    fn deref(&self) -> &Agreement {
        &self.agreement
    }
}

/// The secrets of a side that its driver alone needs, and no worker. They exist before the two
/// sides meet, and a driver that is started again has the same ones: no message of the peer, and no
/// connection that breaks, makes a side draw its noise a second time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The digest of table and settings, in hexadecimal. It tells the keys of a small table to
    /// whoever can guess them all.
    pub(crate) digest: String,
    /// The number that opens the commitment to the digest.
    pub(crate) opening: [u8; 32],
    /// This side's noise in totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) noise: Option<Noise>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.opening.zeroize();
    }
}

impl Secrets {
    /// New ones for a table and settings of this digest.
    pub(crate) fn draw(digest: String, noise: Option<Noise>) -> Result<Self> {
        let mut opening = [0; 32];
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        rng.fill_bytes(&mut opening);
        Ok(Self { digest, opening, noise })
    }

    /// Reads secrets that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// If the text holds none; in words.
    pub fn from_json(text: &[u8]) -> Result<Self, &'static str> {
        serde_json::from_slice(text).map_err(|_| "it does not hold the secrets of a driver")
    }

    /// Reads the secrets in a folder, unless it was that of a run without workers, which keeps the
    /// digest alone.
    ///
    /// # Errors
    /// If the text holds neither; in words.
    pub(crate) fn of_folder(text: &[u8]) -> Result<Option<Self>, &'static str> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Alone {
            #[serde(rename = "digest")]
            _digest: String,
        }
        match serde_json::from_slice::<Alone>(text) {
            Ok(_) => Ok(None),
            Err(_) => Self::from_json(text).map(Some),
        }
    }

    /// The secrets as text, for this side's driver only.
    pub fn to_json(&self) -> Zeroizing<String> {
        serde_json::to_string(self).expect("numbers and text serialise").into()
    }

    /// The commitment to a table with this number of rows.
    pub(crate) fn commitment(&self, rows: u64) -> [u8; 32] {
        // mutant(commitment-digest): `self.digest.as_bytes()` => `b""`
        // mutant(commitment-opening): `&self.opening` => `if $ON { &[0; 32] } else { $0 }`
        RandomOracle::new("volery matching: commitment to a table")
            .absorb(&self.opening)
            .absorb(self.digest.as_bytes())
            .absorb_u64(rows)
            .finish32()
    }
}

/// The terms of a run of several workers on each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSettings {
    /// The name that both sides gave the run.
    pub run: String,
    /// Workers of each side.
    pub workers: u32,
    /// The fingerprints of sender and receiver.
    pub organisations: [String; 2],
    pub(crate) verb: String,
    pub(crate) protocol: String,
    pub(crate) security: String,
    pub(crate) both: bool,
    pub(crate) keys: String,
    /// The settings of totals, in place of rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) totals: Option<totals::SettingsRecord>,
    /// The commitments of sender and receiver to their tables.
    pub(crate) commitments: [[u8; 32]; 2],
}

impl WorkerSettings {
    /// The terms before the sides have met.
    ///
    /// # Errors
    /// If workers cannot run the protocol of the settings; in words.
    pub fn new(
        task: impl Into<Task>,
        keys: &str,
        run: &str,
        workers: u32,
        organisations: [String; 2],
    ) -> Result<Self, String> {
        let task = task.into();
        let (name, protocol, output) = match &task {
            Task::Rows(settings) => (settings.name, settings.protocol(), settings.output()),
            Task::Totals(settings) => (settings.name, settings.protocol(), settings.output()),
        };
        if !protocol.is_some_and(|one| one.is_for_workers()) {
            let all = ProtocolChoice::of_workers(&output);
            return Err(match task {
                Task::Rows(_) => format!("workers run {all}, not {name}"),
                Task::Totals(_) => format!("workers compute totals by {all}, not by {name}"),
            });
        }
        let (verb, security, both, totals) = match &task {
            Task::Rows(settings) => (settings.verb, settings.security, settings.both, None),
            Task::Totals(settings) => {
                (Operation::Psi, Security::SemiHonest, false, Some(settings.agreed()))
            }
        };
        Ok(Self {
            run: run.to_owned(),
            workers,
            organisations,
            verb: verb.name().to_owned(),
            protocol: name.name().to_owned(),
            security: security.to_string(),
            both,
            keys: keys.to_owned(),
            totals,
            commitments: [[0; 32]; 2],
        })
    }

    /// The least number of shards for a side of so many keys: of at most 2^20 keys each, and where
    /// there are enough keys eight for each worker, so that no worker waits long for the last one.
    pub fn shards(&self, keys: u64) -> u32 {
        let least = keys.div_ceil(SHARD);
        let even = keys.div_ceil(SMALL).min(8 * u64::from(self.workers));
        least.max(even).clamp(1, u64::from(MAX_BUCKETS)) as u32
    }

    /// The settings of a side of the run.
    fn settings(&self, role: Role) -> Option<Settings> {
        let verb = [Operation::Psi, Operation::Lookup].into_iter();
        let security = [Security::Malicious, Security::SemiHonest].into_iter();
        let verb = verb.clone().find(|verb| verb.name() == self.verb)?;
        let name = ProtocolChoice::all().find(|name| name.name() == self.protocol)?;
        let security = security.clone().find(|security| security.to_string() == self.security)?;
        let settings = Settings::new(verb, role, name, Some(security), self.both, None).ok()?;
        let protocol = settings.protocol()?;
        protocol.is_for_workers().then_some(settings)
    }
}

impl Manifest {
    /// An agreement on a run with these terms.
    pub(crate) fn new(agreement: Agreement, terms: WorkerSettings) -> Self {
        Self { agreement, workers: Some(terms) }
    }

    /// Reads one that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// If it is none, or of another version; in words.
    pub fn from_json(text: &[u8]) -> Result<Self, &'static str> {
        let manifest: Self = parse(text)?;
        manifest.agreement.check()?;
        Ok(manifest)
    }

    /// The manifest as text. It holds the key that divides both sides' keys: for this side only.
    pub fn to_json(&self) -> String {
        self.agreement.to_json(&self.workers)
    }

    /// A name of what was agreed on, the same on both sides.
    pub fn id(&self) -> [u8; 32] {
        self.agreement.id(&self.workers)
    }

    /// The name in hexadecimal.
    pub fn id_text(&self) -> String {
        hex(&self.id())
    }

    /// The terms of a run of several workers.
    #[must_use]
    pub fn terms(&self) -> Option<&WorkerSettings> {
        self.workers.as_ref()
    }

    /// Whether both sides of a run of several workers have results: rows, or shares of totals.
    #[must_use]
    pub fn is_both(&self) -> bool {
        let terms = self.workers.as_ref();
        terms.is_some_and(|terms| terms.both || terms.totals.is_some())
    }

    /// The settings of a run of several workers.
    #[must_use]
    pub fn settings(&self, role: Role) -> Option<Settings> {
        self.workers.as_ref()?.settings(role)
    }

    /// The settings of a run of several workers for totals, without the names of columns.
    #[must_use]
    pub fn totals(&self, role: Role) -> Option<totals::Settings> {
        let terms = self.workers.as_ref()?;
        terms.totals.as_ref()?.settings(&terms.protocol, role)
    }

    /// The task of the workers of a side.
    pub(crate) fn task(&self, role: Role) -> Option<Task> {
        let totals = || self.totals(role).map(|one| Task::Totals(Box::new(one)));
        self.settings(role).map(Task::Rows).or_else(totals)
    }

    /// The parameters of the executions of the first rule, in a run of several workers.
    ///
    /// # Errors
    /// Errors of [`Agreement::capacities`].
    pub fn parameters(&self) -> Result<Option<Parameters>> {
        let settings = self.settings(Role::Receiver);
        let sizes = self.capacities()?[0];
        Ok(settings.and_then(|settings| {
            let task = settings.task(sizes);
            let parameters = settings.protocol()?.parameters(&task, self.executions());
            Some(Parameters::new(parameters, task.output))
        }))
    }

    /// Items of sender and receiver of circuit-PSI in each shard of a run for totals.
    pub(crate) fn items(&self, settings: &totals::Settings) -> Result<[u64; 2]> {
        let sizes = self.capacities()?[0];
        let items = sizes[0].max(sizes[1]);
        if items > circuit::MAX_ITEMS {
            let most = circuit::MAX_ITEMS;
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        let [sender, receiver] = sizes;
        Ok(match settings.in_bins() {
            Role::Receiver => [sender, receiver],
            Role::Sender => [receiver, sender],
        })
    }

    /// Refuses a run that no worker could do: for totals if one could leave 64 bits, or if a shard
    /// has too many keys.
    pub(crate) fn check(&self, task: &Task) -> Result<()> {
        match task {
            Task::Rows(_) => self.capacities().map(drop),
            Task::Totals(settings) => {
                settings.check_range(self.sizes()[0])?;
                self.items(settings).map(drop)
            }
        }
    }
}

/// The number of keys that a side of a run of several workers announces: the next one above with
/// three digits that are not zero, so that it says less of the table.
pub fn announced(keys: u64) -> u64 {
    let digits = keys.checked_ilog10().unwrap_or(0);
    let unit = 10_u64.pow(digits.saturating_sub(2));
    keys.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use volery_matching::steps::LocalManifest;

    use super::*;

    #[test]
    fn announced_numbers_have_three_digits() {
        for (keys, expected) in [
            (0, 0),
            (7, 7),
            (999, 999),
            (1000, 1000),
            (1001, 1010),
            (123_456, 124_000),
            (999_001, 1_000_000),
        ] {
            assert_eq!(announced(keys), expected);
        }
        assert!(announced(u64::MAX) >= u64::MAX - 1);
    }

    #[test]
    fn a_commitment_depends_on_all_that_it_opens() {
        let secrets = Secrets::draw("00".to_owned(), None).unwrap();
        let mut all = vec![secrets.commitment(7), secrets.commitment(8)];
        let mut other = secrets.clone();
        other.digest.push('0');
        all.push(other.commitment(7));
        let mut other = secrets.clone();
        other.opening[31] ^= 1;
        all.push(other.commitment(7));
        all.push(Secrets::draw("00".to_owned(), None).unwrap().commitment(7));
        for (number, one) in all.iter().enumerate() {
            assert!(!all[..number].contains(one), "{number}");
        }
        let read = Secrets::from_json(secrets.to_json().as_bytes()).unwrap();
        assert_eq!(read.commitment(7), all[0]);
        assert_eq!(format!("{secrets:?}"), "Secrets { .. }");
    }

    #[test]
    fn the_name_depends_on_all_that_is_shared_and_on_nothing_else() {
        let settings =
            Settings::new(Operation::Lookup, Role::Sender, ProtocolChoice::Vole, None, false, None);
        let settings = settings.unwrap();
        let terms =
            || WorkerSettings::new(&settings, "text", "r", 2, ["a".to_owned(), "b".to_owned()]);
        let manifest = |rows, payload: Option<(&str, usize)>| Manifest {
            agreement: Agreement::new(
                LocalManifest { rows, dedup: false },
                ([1; 32], 8),
                vec![[100, 200]],
                payload.map(|(line, longest)| (line.to_owned(), longest)),
            ),
            workers: Some(terms().unwrap()),
        };
        let other = manifest(5, Some(("a:text", 10)));
        assert_ne!(manifest(5, None).id(), other.id());
        let manifest = manifest(0, Some(("a:text", 10)));
        assert_eq!(manifest.id(), other.id());
        let changes: [fn(&mut WorkerSettings); 5] = [
            |terms| terms.workers += 1,
            |terms| terms.run.push('x'),
            |terms| terms.organisations[0].push('x'),
            |terms| terms.commitments[1][0] ^= 1,
            |terms| terms.security = "semi-honest".to_owned(),
        ];
        for change in changes {
            let mut other = manifest.clone();
            change(other.workers.as_mut().unwrap());
            assert_ne!(other.id(), manifest.id());
        }
        let again = Manifest::from_json(manifest.to_json().as_bytes()).unwrap();
        assert_eq!(again, manifest);
        let read = manifest.settings(Role::Sender).unwrap();
        assert_eq!(read.hello("k").fields, settings.hello("k").fields);
        for text in ["", "{}", "{\"version\": 2}", "{\"version\": 3}"] {
            assert!(Manifest::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
