//! A semi-private array between two processes, and the cost of an access.
//!
//! ```text
//! (cd lab && cargo build --profile dist --example array)
//! target/dist/examples/array partner --listen  127.0.0.1:7000 [N [ACCESSES]]
//! target/dist/examples/array holder  --connect 127.0.0.1:7000 [N [ACCESSES]]
//! target/dist/examples/array measure [N [ACCESSES]]
//! target/dist/examples/array load    [N]
//! target/dist/examples/array stash   [N [ACCESSES]]
//! ```
//!
//! The holder accesses an array of `N` zeros (2^20 64-bit words) at random indices, which the
//! partner does not learn: it opens an entry, and in half of the accesses sets it to another value,
//! which the partner does not learn either. For this test the holder also keeps a plain array and
//! compares. `measure` runs both parties in one process, over the loopback interface and over a
//! link of 100 Mbit/s with a round trip of 20 ms; `load` shares an array and loads it; `stash`
//! repeats the experiment about the size of the stash.

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use volery_apps::array::{Holder, Partner, dense, stash};
use volery_channel::{
    Channel, Hello, SessionId, Stats, handshake, run_two_channels, run_two_parties_tcp, shaped, tcp,
};
use volery_field::{Ring, Z64};
use volery_ot::convert;
use volery_ot::softspoken::{self, SmallField};
use volery_primitives::prg::Prg;

/// The run ends if the peer is silent for this long.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The small field of the OT extension.
const FIELD: SmallField = SmallField::Bits8;
/// Accesses that are not measured.
const FIRST: usize = 10;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |arguments: &[&str], place: usize, default: usize| {
        arguments
            .get(place)
            .map_or(Ok(default), |text| text.parse())
    };
    match &arguments[..] {
        ["partner", way, address, sizes @ ..] if sizes.len() <= 2 => {
            let (n, accesses) = (number(sizes, 0, 1 << 20)?, number(sizes, 1, 1000)?);
            let mut channel = open(way, address)?;
            let session = begin(&mut channel, "partner", n, accesses)?;
            partner(n, accesses, session, &mut channel)
        }
        ["holder", way, address, sizes @ ..] if sizes.len() <= 2 => {
            let (n, accesses) = (number(sizes, 0, 1 << 20)?, number(sizes, 1, 1000)?);
            let mut channel = open(way, address)?;
            let session = begin(&mut channel, "holder", n, accesses)?;
            let report = holder(n, accesses, session, &mut channel)?;
            report.show("two processes");
            Ok(())
        }
        ["measure", sizes @ ..] if sizes.len() <= 2 => {
            measure(number(sizes, 0, 1 << 20)?, number(sizes, 1, 1000)?)
        }
        ["load", sizes @ ..] if sizes.len() <= 1 => load(number(sizes, 0, 1 << 20)?),
        ["stash", sizes @ ..] if sizes.len() <= 2 => {
            fill_stash(number(sizes, 0, 1 << 14)?, number(sizes, 1, 10_000_000)?)
        }
        _ => Err(
            "usage: array partner|holder --listen|--connect HOST:PORT [N [ACCESSES]], array measure [N [ACCESSES]], \
             array load [N], or array stash [N [ACCESSES]]"
                .into(),
        ),
    }
}

fn open(way: &str, address: &str) -> Result<Channel, Failure> {
    match way {
        "--listen" => Ok(tcp::listen(address, TIMEOUT)?),
        "--connect" => Ok(tcp::connect(address, TIMEOUT)?),
        _ => Err("give --listen HOST:PORT on one side and --connect HOST:PORT on the other".into()),
    }
}

/// The first message both ways: it checks that both sides run the same protocol.
fn begin(
    channel: &mut Channel,
    role: &'static str,
    n: usize,
    accesses: usize,
) -> Result<SessionId, Failure> {
    if !(1..=1 << 30).contains(&n) {
        return Err(format!("an array has 1 to 2^30 entries, not {n}").into());
    }
    let hello = Hello {
        protocol: "example array over z64",
        role,
        fields: vec![
            ("entries", n.to_string()),
            ("accesses", accesses.to_string()),
        ],
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    Ok(handshake(channel, &hello, nonce)?)
}

/// P1, which sees shares of the array and no indices.
fn partner(
    n: usize,
    accesses: usize,
    session: SessionId,
    channel: &mut Channel,
) -> Result<(), Failure> {
    let cot = softspoken::Sender::setup(None, FIELD, session, Prg::from_os()?, channel)?;
    let mut ot = convert::Sender::new(cot, session);
    let mut array = Partner::<Z64>::new(n);
    for _ in 0..FIRST + accesses {
        array.open(&mut ot, channel)?;
    }
    let mut vector = dense::Partner::new(vec![Z64::ZERO; n], session, Prg::from_os()?);
    for _ in 0..DENSE {
        vector.add(Z64::ONE, &mut ot, channel)?;
    }
    Ok(channel.flush()?)
}

/// Additions to a dense vector.
const DENSE: usize = 9;

/// P2, which knows the indices.
fn holder(
    n: usize,
    accesses: usize,
    session: SessionId,
    channel: &mut Channel,
) -> Result<Report, Failure> {
    let cot = softspoken::Receiver::setup(FIELD, session, Prg::from_os()?, channel)?;
    let mut ot = convert::Receiver::new(cot, session);
    let mut array = Holder::<Z64>::zeros(n, Prg::from_os()?);
    let mut plain = vec![Z64::ZERO; n];
    let mut rng = Prg::from_os()?;
    let mut used: Vec<usize> = Vec::new();
    let mut report = Report::new(n, accesses);
    for access in 0..FIRST + accesses {
        // Half of the accesses return to a used entry.
        let index = match used.len() as u64 {
            len if len > 0 && rng.next_u64() % 2 == 0 => used[rng.below(len) as usize],
            _ => rng.below(n as u64) as usize,
        };
        used.push(index);
        let new = (rng.next_u64() % 2 == 0).then(|| Z64::random(&mut rng));
        let (start, before) = (Instant::now(), channel.stats());
        let value = array.replace(index, |old| new.unwrap_or(old), &mut ot, channel)?;
        if access >= FIRST {
            report.times.push(start.elapsed());
            report.cost = channel.stats() - before;
        }
        if value != plain[index] {
            return Err(format!("access {access} gave another value than the plain array").into());
        }
        plain[index] = new.unwrap_or(value);
    }
    let mut vector = dense::Holder::new(vec![Z64::ZERO; n], session);
    for _ in 0..DENSE {
        let (start, before) = (Instant::now(), channel.stats());
        vector.add(rng.below(n as u64) as usize, Z64::ONE, &mut ot, channel)?;
        report.dense_times.push(start.elapsed());
        report.dense_cost = channel.stats() - before;
    }
    Ok(report)
}

/// The measurements at the holder.
struct Report {
    n: usize,
    accesses: usize,
    times: Vec<Duration>,
    cost: Stats,
    dense_times: Vec<Duration>,
    dense_cost: Stats,
}

impl Report {
    fn new(n: usize, accesses: usize) -> Self {
        Self {
            n,
            accesses,
            times: Vec::with_capacity(accesses),
            cost: Stats::default(),
            dense_times: Vec::new(),
            dense_cost: Stats::default(),
        }
    }

    fn show(&self, link: &str) {
        let Self { n, accesses, .. } = self;
        show(&format!(
            "{link}: {n} words, {accesses} accesses, all equal to those of a plain array"
        ));
        show(&format!(
            "  access:         {}",
            line(&self.times, self.cost)
        ));
        show(&format!(
            "  addition to a dense vector: {}",
            line(&self.dense_times, self.dense_cost)
        ));
    }
}

fn line(times: &[Duration], cost: Stats) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else {
        return "none".into();
    };
    let at = |part: f64| times[(last as f64 * part) as usize].as_secs_f64() * 1e3;
    format!(
        "median {:.2} ms, 99 of 100 within {:.2} ms; {} bytes from the holder, {} from the partner, {} messages",
        at(0.5),
        at(0.99),
        cost.bytes_sent,
        cost.bytes_received,
        cost.messages_sent + cost.messages_received
    )
}

/// Both parties in one process.
fn measure(n: usize, accesses: usize) -> Result<(), Failure> {
    let mut session = [0; 32];
    let mut fresh = || -> Result<SessionId, Failure> {
        Prg::from_os()?.fill_bytes(&mut session);
        Ok(SessionId::from_bytes(session))
    };
    let id = fresh()?;
    let (left, right) = run_two_parties_tcp(
        |channel| partner(n, accesses, id, channel),
        |channel| holder(n, accesses, id, channel),
    );
    left?;
    right?.show("loopback");
    let id = fresh()?;
    // The link is slow and steady: fewer accesses are enough.
    let accesses = accesses.min(100);
    let link = |inner| Channel::new(shaped(inner, 100_000_000, Duration::from_millis(20)));
    let (left, right) = volery_channel::memory::pair();
    let ((left, _), (right, _)) = run_two_channels(
        link(left),
        link(right),
        |channel| partner(n, accesses, id, channel),
        |channel| holder(n, accesses, id, channel),
    );
    left?;
    right?.show("100 Mbit/s, 20 ms");
    show(&floram(n));
    Ok(())
}

/// The cost of one access of FLORAM, with a distributed point function whose keys need no garbled
/// circuit: computed, not measured.
fn floram(n: usize) -> String {
    let h = n.next_power_of_two().ilog2() as usize;
    // Each way and level: two OTs' corrections of a block in all, a block and two bits of
    // correction words. Twice: to read and to write.
    let keys = 2 * h * (2 * 16 + 2 * 16 + 1);
    // One AES in a garbled circuit with two blocks for each of its 5,120 AND gates.
    let prf = 5_120 * 32;
    // Every sqrt(n) accesses each party sends the other n masked blocks.
    let refresh = 2 * 16 * (n as f64).sqrt() as usize;
    format!(
        "FLORAM with a distributed point function (computed, not measured): {} rounds, and per access {keys} bytes for the keys \
         (read and write), {prf} for the PRF in a garbled circuit, {refresh} for the refresh every sqrt(n) accesses; OTs \
         and the scan of its stash come on top",
        h + 1
    )
}

/// Loads a shared array.
fn load(n: usize) -> Result<(), Failure> {
    let mut session = [0; 32];
    Prg::from_os()?.fill_bytes(&mut session);
    let session = SessionId::from_bytes(session);
    let (left, right) = run_two_parties_tcp(
        |channel| -> Result<(), Failure> {
            let cot = softspoken::Sender::setup(None, FIELD, session, Prg::from_os()?, channel)?;
            let mut ot = convert::Sender::new(cot, session);
            let shares = vec![Z64::ONE; n];
            Partner::load(&shares, &mut ot, channel)?.open(&mut ot, channel)?;
            Ok(())
        },
        |channel| -> Result<(Duration, Stats, Z64), Failure> {
            let cot = softspoken::Receiver::setup(FIELD, session, Prg::from_os()?, channel)?;
            let mut ot = convert::Receiver::new(cot, session);
            let shares: Vec<_> = (0..n as u64).map(Z64::new).collect();
            let (start, before) = (Instant::now(), channel.stats());
            let mut array = Holder::load(&shares, Prg::from_os()?, &mut ot, channel)?;
            let (time, cost) = (start.elapsed(), channel.stats() - before);
            Ok((time, cost, array.open(n - 1, &mut ot, channel)?))
        },
    );
    left?;
    let (time, cost, last) = right?;
    if last != Z64::new(n as u64) {
        return Err("the last entry differs from the loaded one".into());
    }
    show(&format!(
        "{n} words loaded in {:.1} s; {} bytes from the holder, {} from the partner, {} messages",
        time.as_secs_f64(),
        cost.bytes_sent,
        cost.bytes_received,
        cost.messages_sent + cost.messages_received
    ));
    Ok(())
}

/// The experiment of the module `stash`.
fn fill_stash(n: usize, accesses: usize) -> Result<(), Failure> {
    let exceeding = stash::exceeding(n, accesses as u64, Prg::from_os()?)?;
    for (blocks, count) in exceeding
        .iter()
        .enumerate()
        .take_while(|(_, count)| **count > 0)
    {
        let bits = (accesses as f64 / *count as f64).log2();
        show(&format!(
            "more than {blocks:2} blocks: {count:9} times, 2^-{bits:.2}"
        ));
    }
    match stash::Fit::new(&exceeding, accesses as u64) {
        None => show("too few accesses for a line"),
        Some(fit) => show(&format!(
            "line through the upper half: {:.3} bits a block; extrapolated to {} blocks, 2^-{:.0}",
            fit.slope,
            stash::CAPACITY,
            fit.bits(stash::CAPACITY)
        )),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn show(line: &str) {
    println!("{line}");
}
