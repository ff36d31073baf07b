//! Who may ask, and how much.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use volery_channel::Cancel;
use volery_channel::service::ClientCredential;
use volery_channel::tls::Fingerprint;
use volery_os::sync::{Arc, Mutex, PoisonError};
use volery_os::time::{Duration, Instant};
use volery_psi::served::{Allow, Later, Refusal};
use volery_run::failure::{Failure, Result, Status};

use crate::spent::Journal;

/// Longest file, in bytes.
const BOUND: u64 = 16 << 20;

/// Connections of a client at the same time, unless the file says otherwise.
const CONNECTIONS: u64 = 8;

/// The longest time for which an answer is held back; a client that would have to wait longer is
/// told when to come again.
const HELD_BACK: Duration = Duration::from_secs(30);

/// Of clients on this machine, where no file says otherwise.
const LOCAL_A_DAY: u64 = 1_000_000;

/// Of the journal and the metrics, where no certificate names the client.
const LOCAL: &str = "loopback";

/// The form of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default)]
    client: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    fingerprint: Option<String>,
    token: Option<String>,
    keys: Option<u64>,
    keys_per_day: Option<u64>,
    keys_per_second: Option<u64>,
    connections: Option<u64>,
}

/// The bounds of a client; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    keys: Option<u64>,
    a_day: Option<u64>,
    a_second: Option<u64>,
    connections: u64,
}

/// The number of keys that a client may still ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemainingKeys {
    pub(crate) in_all: Option<u64>,
    pub(crate) today: Option<u64>,
}

impl RemainingKeys {
    pub(crate) fn least(self) -> Option<u64> {
        match (self.in_all, self.today) {
            (Some(all), Some(today)) => Some(all.min(today)),
            (all, today) => all.or(today),
        }
    }
}

pub(crate) struct Client {
    pub(crate) name: String,
    shown: ClientCredential,
    bounds: Bounds,
    usage: Arc<Usage>,
}

/// The usage of a client, which stays when the file is read again.
struct Usage {
    connections: AtomicU64,
    /// The connections that wait to be told that they have no place.
    refused: AtomicU64,
    bucket: Mutex<Bucket>,
}

/// Keys that may be asked for at once: below zero if more were.
struct Bucket {
    level: f64,
    then: Instant,
}

impl Bucket {
    /// Lets so many be asked for; or the time until any may be. A request is let through whole as
    /// soon as all before it are paid for, however large it is.
    fn take(&mut self, items: u64, a_second: u64, now: Instant) -> Result<(), Duration> {
        let rate = a_second as f64;
        let passed = now.saturating_duration_since(self.then).as_secs_f64();
        self.level = (self.level + passed * rate).min(rate);
        self.then = now;
        // mutant(serve-rate): false
        if self.level < 0.0 {
            // Not so close that rounding leaves a rest.
            return Err(Duration::from_secs_f64(0.001 - self.level / rate));
        }
        self.level -= items as f64;
        Ok(())
    }

    fn give_back(&mut self, items: u64) {
        self.level += items as f64;
    }
}

/// Connections of a client that wait at the same time to be told that they have no place.
const REFUSED: u64 = 2;

/// A connection of a client, counted until it is dropped.
pub(crate) struct Connection(Arc<Usage>, fn(&Usage) -> &AtomicU64);

impl Connection {
    /// Counts one, unless there are `most` already.
    fn count(usage: &Arc<Usage>, of: fn(&Usage) -> &AtomicU64, most: u64) -> Option<Self> {
        // mutant(serve-own-connections): `number < most` => `true`
        let more = |number| (number < most).then_some(number + 1);
        of(usage).fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Self(Arc::clone(usage), of))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::SeqCst);
    }
}

impl Client {
    /// The name of the client in the journal.
    fn who(&self) -> String {
        match self.shown {
            ClientCredential::Nothing => LOCAL.to_owned(),
            ClientCredential::Certificate(print) => print.to_string(),
            ClientCredential::Token(print) => format!("token:{print}"),
        }
    }

    /// Counts a connection, unless there are too many.
    pub(crate) fn connect(&self) -> Option<Connection> {
        Connection::count(&self.usage, |usage| &usage.connections, self.bounds.connections)
    }

    /// Counts a connection that has no place, unless others wait to be told so.
    pub(crate) fn wait_for_refusal(&self) -> Option<Connection> {
        Connection::count(&self.usage, |usage| &usage.refused, REFUSED)
    }

    pub(crate) fn left(&self, spent: &Journal) -> RemainingKeys {
        self.left_after(spent.of(&self.who()))
    }

    fn left_after(&self, [all, today]: [u64; 2]) -> RemainingKeys {
        let left = |bound: Option<u64>, spent| bound.map(|bound| bound.saturating_sub(spent));
        RemainingKeys { in_all: left(self.bounds.keys, all), today: left(self.bounds.a_day, today) }
    }
}

pub(crate) struct Clients(Vec<Arc<Client>>);

impl Clients {
    /// Reads the file; without one there is the client on this machine, unless the server has an
    /// identity or is public.
    pub(crate) fn read(
        file: Option<&Path>,
        own: Option<Fingerprint>,
        is_public: bool,
    ) -> Result<Self> {
        let Some(path) = file else {
            let refuse = |what, hint| Err(Failure::usage("--clients", what).with_hint(hint));
            if own.is_some() {
                return refuse(
                    "required with --identity: it names the clients",
                    "a table [[client]] for each, with name, fingerprint and keys_per_day",
                );
            }
            if is_public {
                return refuse(
                    "required with --web-certificate, and with a --web-origin of another machine: it names the clients",
                    "a table [[client]] for each, with name, token and keys_per_day; 'volery keygen --token' makes a token and prints its fingerprint",
                );
            }
            let entry = Entry {
                name: LOCAL.to_owned(),
                fingerprint: None,
                token: None,
                keys: None,
                keys_per_day: Some(LOCAL_A_DAY),
                keys_per_second: None,
                connections: Some(u32::MAX.into()),
            };
            return Self::of(vec![entry], own, is_public)
                .map_err(|what| Failure::new(Status::Other, what));
        };
        let wrong = |what: &dyn std::fmt::Display| {
            let message = format_args!("--clients: {}: {what}", path.display());
            Failure::new(Status::Other, message)
        };
        let size = path.metadata().map_err(|error| wrong(&error))?.len();
        if size > BOUND {
            return Err(wrong(&"the file is too long"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let form: Form = toml::from_str(&text).map_err(|error| wrong(&error))?;
        Self::of(form.client, own, is_public).map_err(|what| wrong(&what))
    }

    fn of(entries: Vec<Entry>, own: Option<Fingerprint>, is_public: bool) -> Result<Self, String> {
        let (mut names, mut prints) = (HashSet::new(), HashSet::new());
        let mut clients = Vec::new();
        for entry in entries {
            let name = entry.name;
            let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            if !(1..=64).contains(&name.len()) || !name.chars().all(allowed) {
                let what = "a name has 1 to 64 letters, digits, '.', '_' or '-'";
                return Err(format!("{what}: '{name}'"));
            }
            let print = |text: Option<String>| {
                let print = text.map(|text| text.parse::<Fingerprint>());
                let print = print.transpose();
                print.map_err(|wrong| format!("client '{name}': {wrong}"))
            };
            let shown = match (print(entry.fingerprint)?, print(entry.token)?) {
                (Some(_), Some(_)) => {
                    let what = "has a fingerprint and a token: give each a table of its own";
                    return Err(format!("client '{name}' {what}"));
                }
                (Some(_), None) if own.is_none() => {
                    return Err(format!(
                        "client '{name}' has a fingerprint, and the server no --identity"
                    ));
                }
                (Some(print), None) if own == Some(print) => {
                    let what = "has the fingerprint of the server's own --identity";
                    return Err(format!("client '{name}' {what}"));
                }
                // mutant(serve-anonymous): `is_public` => `false`
                (None, None) if own.is_some() || is_public => {
                    return Err(format!("client '{name}' has no fingerprint and no token"));
                }
                (Some(print), None) => ClientCredential::Certificate(print),
                (None, Some(print)) => ClientCredential::Token(print),
                (None, None) => ClientCredential::Nothing,
            };
            let is_new = prints.insert(shown);
            if !names.insert(name.clone()) || !is_new {
                return Err(format!("client '{name}' stands there twice"));
            }
            if (entry.keys, entry.keys_per_day) == (None, None) {
                let what = "has no budget: give keys, keys_per_day or both";
                return Err(format!("client '{name}' {what}"));
            }
            if entry.keys_per_second == Some(0) {
                return Err(format!("client '{name}': keys_per_second is at least 1"));
            }
            let bounds = Bounds {
                keys: entry.keys,
                a_day: entry.keys_per_day,
                a_second: entry.keys_per_second,
                connections: entry.connections.unwrap_or(CONNECTIONS),
            };
            let usage = Arc::new(Usage {
                connections: AtomicU64::new(0),
                refused: AtomicU64::new(0),
                bucket: Mutex::new(Bucket { level: 0.0, then: Instant::now() }),
            });
            clients.push(Arc::new(Client { name, shown, bounds, usage }));
        }
        Ok(Self(clients))
    }

    /// The same clients, those that were there before with what they use.
    pub(crate) fn following(self, before: &Self) -> Self {
        let followed = self.0.into_iter().map(|client| {
            let Some(earlier) = before.find(client.shown) else {
                return client;
            };
            Arc::new(Client {
                name: client.name.clone(),
                shown: client.shown,
                bounds: client.bounds,
                usage: Arc::clone(&earlier.usage),
            })
        });
        Self(followed.collect())
    }

    /// The client that has shown this. All tokens are compared, each in constant time.
    pub(crate) fn find(&self, shown: ClientCredential) -> Option<Arc<Client>> {
        let is_same = |one: &&Arc<Client>| match (one.shown, shown) {
            (ClientCredential::Token(one), ClientCredential::Token(other)) => one.is_same(&other),
            (one, other) => one == other,
        };
        let found = self.0.iter().filter(is_same);
        found.fold(None, |_, one| Some(Arc::clone(one)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.0.iter().map(|client| &**client)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The allowance of one connection of a client.
pub(crate) struct Allowance<'a> {
    clients: &'a (dyn Fn() -> Arc<Clients> + Sync),
    client: &'a Arc<Client>,
    spent: &'a Journal,
    closed: &'a Cancel,
    taken: Mutex<Instant>,
}

impl<'a> Allowance<'a> {
    pub(crate) fn new(
        clients: &'a (dyn Fn() -> Arc<Clients> + Sync),
        client: &'a Arc<Client>,
        spent: &'a Journal,
        closed: &'a Cancel,
    ) -> Self {
        Self { clients, client, spent, closed, taken: Mutex::new(Instant::now()) }
    }

    /// The time since the last request was let through.
    pub(crate) fn since_taken(&self) -> Duration {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.elapsed()
    }

    /// Waits until the client may ask for items, if that is not long.
    fn hold_back(&self, client: &Client, items: u64) -> Result<(), Refusal> {
        let Some(a_second) = client.bounds.a_second else {
            return Ok(());
        };
        loop {
            let bucket = &client.usage.bucket;
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            let Err(wait) = bucket.take(items, a_second, Instant::now()) else {
                return Ok(());
            };
            drop(bucket);
            if wait > HELD_BACK {
                return Err(Refusal::Later(Later::Rate, wait));
            }
            if self.closed.sleep(wait).is_err() {
                let soon = Duration::from_secs(1);
                return Err(Refusal::Later(Later::Unavailable, soon));
            }
        }
    }
}

impl Allow for Allowance<'_> {
    fn take(&self, items: u64) -> Result<Option<u64>, Refusal> {
        // The file may have been read again, also while the client was held back: one that was
        // removed gets no more.
        let none = Refusal::Budget { left: 0, wait: None };
        // mutant(serve-removed): `(self.client.shown).` => `$0or($ON.then(||
        //     Arc::clone(self.client))).`
        let find = || (self.clients)().find(self.client.shown).ok_or(none);
        self.hold_back(&*find()?, items)?;
        let client = find()?;
        let who = client.who();
        // On disk before it is answered: a crash counts too much, never too little.
        let spent = self.spent.add(&who, items, |before| {
            let left = client.left_after(before);
            let enough = |left: Option<u64>| left.is_none_or(|left| left >= items);
            // mutant(serve-budget): `enough(left.in_all) && enough(left.today)` => `true`
            if enough(left.in_all) && enough(left.today) {
                return Ok(());
            }
            Err(Refusal::Budget {
                left: left.least().unwrap_or(0),
                // Tomorrow there are more, if there are enough in all.
                wait: (enough(left.in_all) && client.bounds.a_day >= Some(items))
                    .then(super::spent::until_tomorrow),
            })
        });
        let spent = spent.inspect_err(|_| {
            let bucket = &client.usage.bucket;
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.give_back(items);
        })?;
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(client.left_after(spent).least())
    }
}

#[cfg(test)]
mod tests {
    use volery_os::fs::Lock;

    use super::*;

    const PRINT: &str = "qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8";
    const OWN: &str = "dhv2-ep5f-2e5k-cjpk-4bpd-tsk7-fzr1-5dnj-2h4m";

    fn clients(text: &str, own: Option<&str>) -> Result<Clients, String> {
        let form: Form = toml::from_str(text).map_err(|error| error.to_string())?;
        Clients::of(form.client, own.map(|own| own.parse().unwrap()), false)
    }

    fn certificate() -> ClientCredential {
        ClientCredential::Certificate(PRINT.parse().unwrap())
    }

    #[test]
    fn wrong_files_are_refused() {
        let print = format!("fingerprint = '{PRINT}'");
        let entry = |lines: &[&str]| format!("[[client]]\n{}\n", lines.join("\n"));
        let named = "name = 'a'";
        let good = entry(&[named, &print, "keys = 5"]);
        assert_eq!(clients(&good, Some(OWN)).unwrap().len(), 1);
        assert_eq!(clients("", Some(OWN)).unwrap().len(), 0);
        for (text, fragment) in [
            (entry(&[named, "keys = 5"]), "no fingerprint"),
            (entry(&[named, &print]), "no budget"),
            (
                entry(&[named, &print, &format!("token = '{PRINT}'"), "keys = 5"]),
                "a table of its own",
            ),
            (entry(&[named, "token = 'x'", "keys = 5"]), "client 'a'"),
            (entry(&["name = 'a b'", &print, "keys = 5"]), "a name has"),
            (entry(&["name = ''", &print, "keys = 5"]), "a name has"),
            (entry(&[named, "fingerprint = 'x'", "keys = 5"]), "client 'a'"),
            (entry(&[named, &format!("fingerprint = '{OWN}'"), "keys = 5"]), "own --identity"),
            (format!("{good}{good}"), "twice"),
            (entry(&[named, &print, "keys = 5", "keys_per_second = 0"]), "at least 1"),
            (entry(&[named, &print, "key = 5"]), "unknown field"),
            (entry(&[named, &print, "keys = -5"]), "integer"),
        ] {
            let refused = clients(&text, Some(OWN)).err().unwrap();
            assert!(refused.contains(fragment), "{text}: {refused}");
        }
        let refused = clients(&good, None).err().unwrap();
        assert!(refused.contains("no --identity"), "{refused}");
        // A server for browsers that is open to other machines has no client that shows nothing.
        let open = entry(&[named, "keys = 5"]);
        let entries = || toml::from_str::<Form>(&open).unwrap().client;
        assert!(Clients::of(entries(), None, false).is_ok());
        let refused = Clients::of(entries(), None, true).err().unwrap();
        assert!(refused.contains("no token"), "{refused}");
    }

    #[test]
    fn a_token_is_not_a_certificate() {
        let print: Fingerprint = PRINT.parse().unwrap();
        let text = format!("[[client]]\nname = 'a'\ntoken = '{PRINT}'\nkeys = 5\n");
        let clients = clients(&text, Some(OWN)).unwrap();
        let found = clients.find(ClientCredential::Token(print)).unwrap();
        assert_eq!(found.who(), format!("token:{PRINT}"));
        assert!(clients.find(certificate()).is_none());
        assert!(clients.find(ClientCredential::Nothing).is_none());
        let other = ClientCredential::Token(OWN.parse().unwrap());
        assert!(clients.find(other).is_none());
    }

    #[test]
    fn a_rate_holds_over_any_time() {
        let start = Instant::now();
        let mut bucket = Bucket { level: 0.0, then: start };
        // However large requests are, a second is let through once it is paid for.
        assert_eq!(bucket.take(1000, 100, start), Ok(()));
        let wait = bucket.take(1, 100, start).unwrap_err();
        assert_eq!(wait.as_millis(), 10_001);
        let (mut now, mut asked) = (start, 1000);
        for _ in 0..1000 {
            match bucket.take(70, 100, now) {
                Ok(()) => asked += 70,
                Err(wait) => now += wait,
            }
        }
        let seconds = now.duration_since(start).as_secs_f64();
        assert!(asked as f64 <= 100.0 * seconds + 170.0, "{asked} in {seconds} s");
        assert!(asked as f64 >= 95.0 * seconds, "{asked} in {seconds} s");
    }

    #[test]
    fn a_client_that_was_removed_gets_no_more() {
        let text = format!("[[client]]\nname = 'a'\nfingerprint = '{PRINT}'\nkeys = 5\n");
        let clients = Arc::new(clients(&text, Some(OWN)).unwrap());
        let client = clients.find(certificate()).unwrap();
        let place = tempfile::tempdir().unwrap();
        let serving = Lock::try_new(tempfile::tempfile().unwrap()).unwrap();
        let spent = Journal::open(&place.path().join("spent"), serving, false).unwrap();
        let closed = Cancel::default();
        let now = Mutex::new(Arc::clone(&clients));
        let listed = || Arc::clone(&now.lock().unwrap());
        let allowed = Allowance::new(&listed, &client, &spent, &closed);
        assert_eq!(allowed.take(2), Ok(Some(3)));
        *now.lock().unwrap() = Arc::new(Clients(Vec::new()));
        let none = Refusal::Budget { left: 0, wait: None };
        assert_eq!(allowed.take(2), Err(none));
        *now.lock().unwrap() = clients;
        assert_eq!(allowed.take(3), Ok(Some(0)));
        assert_eq!(allowed.take(1), Err(none));
    }

    #[test]
    fn connections_are_counted_and_stay_when_the_file_is_read_again() {
        let text =
            format!("[[client]]\nname = 'a'\nfingerprint = '{PRINT}'\nkeys = 5\nconnections = 2\n");
        let before = clients(&text, Some(OWN)).unwrap();
        let one = before.find(certificate()).unwrap();
        let first = one.connect().unwrap();
        let after = clients(&text, Some(OWN)).unwrap().following(&before);
        let one = after.find(certificate()).unwrap();
        let _second = one.connect().unwrap();
        assert!(one.connect().is_none());
        drop(first);
        assert!(one.connect().is_some());
    }
}
