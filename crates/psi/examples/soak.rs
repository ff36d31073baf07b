//! Runs of random sizes, one after the other, each compared with a plain set or map.
//!
//! ```text
//! cargo run --release -p volery-psi --example soak -- SECONDS [MOST ITEMS] [SEED] [PROTOCOL]
//! ```
//!
//! A protocol is a variant of KKRT (`kkrt`, `kkrt-paper`) or a form of vector OLE (`malicious`,
//! `fast`, `low-communication`); without one, each run draws its own. A run follows from its seed,
//! which an error names: `soak 0 MOST SEED` repeats that run alone.

use std::collections::{HashMap, HashSet};
use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use volery_channel::{Channel, Role, SessionId, run_two_parties, run_two_parties_tcp};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Output, Party, Protocol};
use volery_psi::vole::{Form, Vole};
use volery_psi::{Items, Variant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, default: u64| {
        arguments.get(place).map_or(Ok(default), |text| text.parse::<u64>())
    };
    let time = Duration::from_secs(number(0, 60)?);
    let most = number(1, 1 << 17)?;
    let mut seed = match arguments.get(2) {
        Some(text) => text.parse()?,
        None => Prg::from_os()?.next_u64() >> 1,
    };
    let only = arguments.get(3).map(|name| place(name)).transpose()?;
    say(&format!("the first seed is {seed}"));
    let start = Instant::now();
    let mut total = Total::default();
    let mut next = start + Duration::from_secs(30);
    loop {
        Run::draw(seed, most, only).check(&mut total)?;
        seed += 1;
        if start.elapsed() >= time {
            break;
        }
        if Instant::now() > next {
            total.report(start.elapsed());
            next += Duration::from_secs(30);
        }
    }
    total.report(start.elapsed());
    Ok(())
}

/// The protocols for large sets, by their names here.
const ALL: [(&str, Protocol); 5] = [
    ("kkrt", &Kkrt(Variant::Kkrt)),
    ("kkrt-paper", &Kkrt(Variant::KkrtPaper)),
    ("malicious", &Vole(Form::Malicious)),
    ("fast", &Vole(Form::Fast)),
    ("low-communication", &Vole(Form::Low)),
];

/// The place of a protocol in the list.
fn place(name: &str) -> Result<usize, String> {
    let found = ALL.iter().position(|(other, _)| *other == name);
    found.ok_or_else(|| format!("no protocol is called {name}"))
}

/// The totals of all runs.
#[derive(Default)]
struct Total {
    /// Runs and items of each protocol.
    of: [[u64; 2]; ALL.len()],
    /// The number of runs that were keyword searches.
    lookups: u64,
    items: u64,
    common: u64,
}

impl Total {
    fn report(&self, elapsed: Duration) {
        let Self { of, lookups, items, common } = self;
        let (seconds, runs) = (elapsed.as_secs(), of.iter().map(|[runs, _]| runs));
        let runs: u64 = runs.sum();
        let each = ALL.iter().zip(of).filter(|(_, [runs, _])| *runs > 0);
        let each = each.map(|((name, _), [runs, items])| format!("{name} {runs} ({items} items)"));
        let each = each.collect::<Vec<_>>().join(", ");
        say(&format!(
            "{seconds} s: {runs} runs: {each}; {lookups} of them keyword searches; {items} items, \
             {common} common, all exact"
        ));
    }
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn say(line: &str) {
    println!("{line}");
}

/// The two sets of one run, and its settings.
struct Run {
    seed: u64,
    /// The place of its protocol.
    kind: usize,
    both: bool,
    lookup: bool,
    tcp: bool,
    ours: Vec<Vec<u8>>,
    theirs: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Run {
    fn draw(seed: u64, most: u64, only: Option<usize>) -> Self {
        let mut rng = Prg::new(Block::new(seed.into()));
        // As many small sets as large ones; powers of two and their neighbours more often than
        // others.
        let mut size = || {
            let bound = rng.below(u64::from(most.max(1).ilog2()) + 1);
            let mut size = rng.below((2 << bound).min(most + 1));
            if rng.below(4) == 0 {
                size = ((1 << bound) + rng.below(3)).saturating_sub(1).min(most);
            }
            size
        };
        let (n, m) = (size(), size());
        // The start of the second set: anywhere from all in common to nothing in common.
        let offset = match rng.below(4) {
            0 => 0,
            1 => n,
            _ => rng.below(n + 1),
        };
        let length = rng.below(40) as usize;
        let salt = rng.next_u64();
        let item = |number: u64| {
            let mut item = format!("{salt:x} {number}").into_bytes();
            if number.is_multiple_of(7) {
                item.resize(item.len() + length, 0);
            }
            item
        };
        let mut ours: Vec<_> = (0..n).map(item).collect();
        let mut theirs: Vec<_> = (offset..offset + m).map(item).collect();
        for set in [&mut ours, &mut theirs] {
            for last in (1..set.len()).rev() {
                set.swap(last, rng.below(last as u64 + 1) as usize);
            }
        }
        let longest = rng.below(64);
        let value = |_: &Vec<u8>| {
            let mut value = vec![0; rng.below(longest + 1) as usize];
            rng.fill_bytes(&mut value);
            value
        };
        let values = ours.iter().map(value).collect();
        let drawn = rng.below(ALL.len() as u64) as usize;
        let kind = only.unwrap_or(drawn);
        Self {
            seed,
            kind,
            both: ALL[kind].0 != "malicious" && rng.below(2) == 0,
            lookup: rng.below(3) == 0,
            tcp: rng.below(8) == 0,
            ours,
            theirs,
            values,
        }
    }

    /// Runs it; an error names the seed.
    fn check(&self, total: &mut Total) -> Result<(), Box<dyn Error>> {
        let exact = self.exact(total).map_err(|error| format!("seed {}: {error}", self.seed))?;
        if !exact {
            return Err(format!("seed {}: the result is wrong", self.seed).into());
        }
        let items = (self.ours.len() + self.theirs.len()) as u64;
        let of = &mut total.of[self.kind];
        *of = [of[0] + 1, of[1] + items];
        total.lookups += u64::from(self.lookup);
        total.items += items;
        Ok(())
    }

    fn exact(&self, total: &mut Total) -> volery_psi::Result<bool> {
        let session = SessionId::from_bytes([self.seed as u8; 32]);
        let rng = |party: u128| Prg::new(Block::new(u128::from(self.seed) << 2 | party));
        let party = |role, items, values, channel: &mut Channel| {
            let party = Party {
                role,
                session,
                rng: rng(role as u128 + 1),
                parts: 1,
                items,
                values,
                output: Output::Items { both: self.both, search: self.lookup },
            };
            ALL[self.kind].1.run(party, &mut (), channel)
        };
        let values: Option<&dyn Items> = self.lookup.then_some(&self.values);
        let sender = |channel: &mut _| party(Role::Sender, &self.ours, values, channel);
        let receiver = |channel: &mut _| party(Role::Receiver, &self.theirs, None, channel);
        let (sent, received) = if self.tcp {
            run_two_parties_tcp(sender, receiver)
        } else {
            run_two_parties(sender, receiver)
        };
        let (sent, received) = (sent?.common, received?);
        let common = received.common.unwrap_or_default();
        total.common += common.len() as u64;

        let (ours, theirs) = (&self.ours, &self.theirs);
        let map: HashMap<_, _> = ours.iter().zip(&self.values).collect();
        let set: HashSet<_> = theirs.iter().collect();
        let expected = (0..theirs.len()).filter(|&i| map.contains_key(&theirs[i]));
        let found_by_sender = (0..ours.len()).filter(|&i| set.contains(&ours[i]));
        let right_values = || {
            let expected = common.iter().map(|&i| map[&theirs[i]]);
            !self.lookup || received.values.iter().eq(expected)
        };
        Ok(expected.eq(common.iter().copied())
            && right_values()
            && sent == self.both.then(|| found_by_sender.collect()))
    }
}
