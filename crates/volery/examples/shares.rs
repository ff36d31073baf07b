//! A mean and a linear regression over matched rows that nobody sees: computed on the shares of
//! `volery psi --result shares`, by two processes.
//!
//! ```text
//! volery psi --role sender   ... --result shares=age   --bound 150    --out shares-sender
//! volery psi --role receiver ... --result shares=spend --bound 100000 --out shares-receiver
//!
//! cargo run --release -p volery --example shares -- sender   127.0.0.1:7000 shares-sender
//! cargo run --release -p volery --example shares -- receiver 127.0.0.1:7000 shares-receiver
//! ```
//!
//! With `x` the sender's first column and `y` the receiver's, both sides learn the number of common
//! keys and, if there are enough, the sums of `x`, `y`, `x^2` and `xy` over them: from these follow
//! the means and the line `y = a + b*x` of least squares. Nothing else is opened. `both DIR DIR`
//! runs both sides in one process, for tests.
//!
//! A sum of shared numbers is a sum of shares. A sum of products of shared numbers has terms that
//! one side knows, and others with a factor of each side: for those each bit of the receiver's
//! factor is a choice in a correlated OT (`volery::apps::ring_cot`). Where a key is not common all
//! numbers are zero, so that no bit has to be multiplied in. Semi-honest, as the shares are.

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use volery::apps::ring_cot;
use volery::channel::{Channel, Hello, run_two_parties_tcp};
use volery::field::Z64;
use volery::ot::convert;
use volery::pcg::{Kind, PlanOptions};
use volery::prelude::*;

/// The fewest common keys of which more than the number is opened.
const MINIMUM: u64 = 20;

/// The run ends after this long without data from the peer.
const TIMEOUT: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One side's shares.
struct Shares {
    session: String,
    /// 0 or 1 for each place; the peer's bit is added modulo 2.
    matches: Vec<u64>,
    /// The columns: the peer's numbers are added modulo 2^64.
    x: Vec<u64>,
    y: Vec<u64>,
    /// Values are multiples of `10^-decimals`.
    decimals: [i32; 2],
}

impl Shares {
    fn read(folder: &Path) -> Outcome<Self> {
        let description = fs::read(folder.join("shares.json"))?;
        let description: serde_json::Value = serde_json::from_slice(&description)?;
        let places = description["places"].as_u64().ok_or("shares.json has no places")?;
        let column = |name: &str| -> Outcome<(Vec<u64>, i32, u64)> {
            let columns = description["columns"].as_array().ok_or("shares.json has no columns")?;
            let found = columns.iter().find(|column| column["array"] == name);
            let column = found.ok_or(format!("each side shares a column: there is no {name}"))?;
            let number = |key: &str| column[key].as_u64().ok_or(format!("{name} has no {key}"));
            let shares = array(&folder.join(format!("{name}.npy")), 8 * places)?;
            let (words, _) = shares.as_chunks();
            let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            Ok((words, i32::try_from(number("decimals")?)?, number("bound")?))
        };
        let (x, x_decimals, x_bound) = column("sender_1")?;
        let (y, y_decimals, y_bound) = column("receiver_1")?;
        // Sums of products are exact as long as they fit.
        let largest = u128::from(x_bound) * u128::from(x_bound.max(y_bound));
        if u128::from(places) * largest >= 1 << 63 {
            return Err("sums of products could leave 64 bits: share with a lower --bound".into());
        }
        let matches = array(&folder.join("match.npy"), places)?;
        Ok(Self {
            session: description["session"].as_str().ok_or("no session")?.to_owned(),
            matches: matches.iter().map(|bit| u64::from(bit & 1)).collect(),
            x,
            y,
            decimals: [x_decimals, y_decimals],
        })
    }

    /// The sums of this side's own shares: of the bits, `x`, `y`, `x^2` and `xy`.
    fn own(&self) -> [u64; 5] {
        let sum = |a: &[u64], b: &[u64]| {
            let products = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(*b));
            products.fold(0_u64, u64::wrapping_add)
        };
        let ones = vec![1; self.x.len()];
        [
            sum(&self.matches, &ones),
            sum(&self.x, &ones),
            sum(&self.y, &ones),
            sum(&self.x, &self.x),
            sum(&self.x, &self.y),
        ]
    }

    /// Products of two shared numbers of all places: three, and that of two bits.
    fn products(&self) -> usize {
        self.x.len() * (3 * 64 + 1)
    }
}

/// The data of an `.npy` file of `bytes` bytes, behind its header.
fn array(path: &Path, bytes: u64) -> Outcome<Vec<u8>> {
    let mut file = fs::read(path)?;
    let [low, high] = file.get(8..10).ok_or("too short for an .npy file")?.try_into()?;
    let header = 10 + usize::from(u16::from_le_bytes([low, high]));
    if file.len() as u64 != header as u64 + bytes {
        return Err(format!("{} has another size than shares.json says", path.display()).into());
    }
    Ok(file.split_off(header))
}

/// The line that both sides learn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    n: u64,
    means: [f64; 2],
    intercept: f64,
    slope: f64,
}

/// The line that follows from the sums of `x`, `y`, `x^2` and `xy` over `n` keys.
fn line(n: u64, [x, y, xx, xy]: [i64; 4], decimals: [i32; 2]) -> Line {
    let [n_, x_, y_, xx, xy] = [n as i64, x, y, xx, xy].map(i128::from);
    let units = decimals.map(|decimals| 10_f64.powi(-decimals));
    let means = [x as f64 / n as f64 * units[0], y as f64 / n as f64 * units[1]];
    let slope = (n_ * xy - x_ * y_) as f64 / (n_ * xx - x_ * x_) as f64 * units[1] / units[0];
    Line { n, means, intercept: means[1] - slope * means[0], slope }
}

/// The handshake: both sides must have shares of the same run.
fn begin<'a>(
    shares: &Shares,
    role: Role,
    channel: &'a mut Channel,
) -> Outcome<(Session<&'a mut Channel>, Plan)> {
    let hello = Hello {
        protocol: "regression",
        role: role.name(),
        fields: vec![
            ("the session of the shares", shares.session.clone()),
            ("places", shares.x.len().to_string()),
        ],
    };
    let options = PlanOptions {
        total: Some(shares.products() as u64),
        security: Security::SemiHonest,
        link: Link { bits_per_second: 1e9, round_trip: 1e-3 },
        ..PlanOptions::default()
    };
    let plan = Plan::new(Kind::Cot, &options)?;
    Ok((Session::begin(channel, &hello)?, plan))
}

/// Opens sums of which both sides have a share.
fn open<const N: usize>(shares: [u64; N], channel: &mut Channel) -> Outcome<[u64; N]> {
    for share in shares {
        channel.send(&share.to_le_bytes())?;
    }
    let mut sums = shares;
    for sum in &mut sums {
        let mut theirs = [0; 8];
        channel.recv(&mut theirs)?;
        *sum = sum.wrapping_add(u64::from_le_bytes(theirs));
    }
    Ok(sums)
}

/// Opens the number of common keys and, if it is enough, the other sums.
///
/// `own`: sums of this side's shares; `products`: shares of the sums of products of one factor of
/// either side, of bits, `x x`, `y x` and `x y`, the sender's factor first.
fn finish(
    own: [u64; 5],
    [bits, x_x, y_x, x_y]: [u64; 4],
    decimals: [i32; 2],
    channel: &mut Channel,
) -> Outcome<Line> {
    let [n, x, y, xx, xy] = own;
    // The XOR of two bits is their sum without twice their product.
    let [n] = open([n.wrapping_sub(bits.wrapping_mul(2))], channel)?;
    if n < MINIMUM {
        return Err(format!("{n} common keys, fewer than {MINIMUM}: nothing else is opened").into());
    }
    let xx = xx.wrapping_add(x_x.wrapping_mul(2));
    let xy = xy.wrapping_add(y_x).wrapping_add(x_y);
    let sums = open([x, y, xx, xy], channel)?;
    Ok(line(n, sums.map(|sum| sum as i64), decimals))
}

fn sender(shares: &Shares, channel: &mut Channel) -> Outcome<Line> {
    let (mut session, plan) = begin(shares, Role::Sender, channel)?;
    let source = cot::Sender::start(&plan, None, &mut session)?;
    let (id, _, channel) = session.parts();
    let mut ot = convert::Sender::new(source, id);
    let mut products = ring_cot::Sender::<Z64, _>::new(shares.products(), &mut ot, channel);
    let mut sums = [0_u64; 4];
    // The receiver's bits are those of x, x and y of all places, then those of the matches.
    for (sum, factors) in sums[1..].iter_mut().zip([&shares.x, &shares.y, &shares.x]) {
        for factor in factors {
            for place in 0..64 {
                let product = products.multiply(Z64::new(factor << place))?;
                *sum = sum.wrapping_add(product.value());
            }
        }
    }
    for bit in &shares.matches {
        sums[0] = sums[0].wrapping_add(products.multiply(Z64::new(*bit))?.value());
    }
    products.finish()?;
    finish(shares.own(), sums, shares.decimals, channel)
}

fn receiver(shares: &Shares, channel: &mut Channel) -> Outcome<Line> {
    let (mut session, plan) = begin(shares, Role::Receiver, channel)?;
    let source = cot::Receiver::start(&plan, &mut session)?;
    let (id, _, channel) = session.parts();
    let mut ot = convert::Receiver::new(source, id);
    let words = [&shares.x, &shares.x, &shares.y].into_iter().flatten();
    let mut choices: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    let matches: Vec<bool> = shares.matches.iter().map(|bit| *bit == 1).collect();
    choices.extend(bits::pack(&matches));
    let count = shares.products();
    let mut products = ring_cot::Receiver::<Z64, _>::new(&choices, count, &mut ot, channel);
    let mut sums = [0_u64; 4];
    let places = shares.x.len();
    for (which, count) in [(1, 64 * places), (2, 64 * places), (3, 64 * places), (0, places)] {
        for _ in 0..count {
            // The whole factor is the sender's.
            let product = products.multiply(Z64::new(0))?;
            sums[which] = sums[which].wrapping_add(product.value());
        }
    }
    drop(products);
    finish(shares.own(), sums, shares.decimals, channel)
}

/// Both sides over TCP on this machine.
fn both(folders: [&Path; 2]) -> Outcome<Line> {
    let [left, right] = folders.map(Shares::read);
    let (left, right) = (left?, right?);
    let (sent, received) = run_two_parties_tcp(|c| sender(&left, c), |c| receiver(&right, c));
    let (sent, received) = (sent?, received?);
    if sent != received {
        return Err("the two sides have different results".into());
    }
    Ok(received)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = match arguments[..] {
        ["sender", address, folder] => {
            let shares = Shares::read(folder.as_ref())?;
            sender(&shares, &mut tcp::listen(address, TIMEOUT)?)?
        }
        ["receiver", address, folder] => {
            let shares = Shares::read(folder.as_ref())?;
            receiver(&shares, &mut tcp::connect(address, TIMEOUT)?)?
        }
        ["both", left, right] => both([left.as_ref(), right.as_ref()])?,
        _ => {
            return Err(
                "usage: shares sender|receiver HOST:PORT DIR, or shares both DIR DIR".into()
            );
        }
    };
    show(&found);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn show(line: &Line) {
    let Line { n, means: [x, y], intercept, slope } = line;
    println!("{n} common keys, mean of x {x:.6}, mean of y {y:.6}");
    println!("y = {intercept:.6} + {slope:.6} x");
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder of its own, which is removed at the end.
    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const PLACES: u64 = 200;

    /// `x` of a key in tenths, and `y` in hundredths.
    fn values(key: u64) -> [i64; 2] {
        let x = (key * 37 % 400) as i64 - 150;
        [x, 12_345 - 3 * x + (key * 11 % 90) as i64]
    }

    /// An array with a header of NumPy's.
    fn npy(bytes: &[u8]) -> Vec<u8> {
        let header =
            format!("{:<117}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }");
        [b"\x93NUMPY\x01\x00", &118_u16.to_le_bytes()[..], header.as_bytes(), bytes].concat()
    }

    /// Writes the shares of a side, as the program does: `side` 0 has random ones.
    fn share(common: &std::ops::Range<u64>, side: u64, folder: &Path) {
        let (mut matches, mut columns) = (Vec::new(), [const { Vec::new() }; 2]);
        for place in 0..PLACES {
            let random = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let found = common.contains(&place);
            let bit = random >> 63;
            matches.push(if side == 0 { bit } else { bit ^ u64::from(found) } as u8);
            for (column, value) in columns.iter_mut().zip(values(place)) {
                let value = if found { value as u64 } else { 0 };
                let share = if side == 0 { random } else { value.wrapping_sub(random) };
                column.extend(share.to_le_bytes());
            }
        }
        fs::create_dir_all(folder).unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), npy(bytes)).unwrap();
        write("match.npy", &matches);
        write("sender_1.npy", &columns[0]);
        write("receiver_1.npy", &columns[1]);
        let column = |name: &str, decimals: u32| serde_json::json!({ "array": name, "bound": 100_000, "decimals": decimals });
        let description = serde_json::json!({
            "session": "a session",
            "places": PLACES,
            "columns": [column("sender_1", 1), column("receiver_1", 2)],
        });
        fs::write(folder.join("shares.json"), description.to_string()).unwrap();
    }

    /// Least squares on plain numbers.
    fn plain(keys: std::ops::Range<u64>) -> Line {
        let points: Vec<[f64; 2]> =
            keys.map(|key| [values(key)[0] as f64 / 10.0, values(key)[1] as f64 / 100.0]).collect();
        let n = points.len() as f64;
        let means = [0, 1].map(|which| points.iter().map(|point| point[which]).sum::<f64>() / n);
        let part = |a: usize, b: usize| -> f64 {
            points.iter().map(|p| (p[a] - means[a]) * (p[b] - means[b])).sum()
        };
        let slope = part(0, 1) / part(0, 0);
        Line { n: points.len() as u64, means, intercept: means[1] - slope * means[0], slope }
    }

    fn shared(name: &str, common: &std::ops::Range<u64>) -> Outcome<Line> {
        let place = env::temp_dir().join(format!("volery-shares-{name}-{}", std::process::id()));
        let place = Place(place);
        let folders = ["sender", "receiver"].map(|side| place.0.join(side));
        (0..).zip(&folders).for_each(|(side, folder)| share(common, side, folder));
        both(folders.each_ref().map(PathBuf::as_path))
    }

    #[test]
    fn the_line_is_that_of_the_common_rows() {
        let (found, expected) = (shared("line", &(50..120)).unwrap(), plain(50..120));
        assert_eq!(found.n, expected.n);
        for (found, expected) in [
            (found.means[0], expected.means[0]),
            (found.means[1], expected.means[1]),
            (found.slope, expected.slope),
            (found.intercept, expected.intercept),
        ] {
            assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} {expected}");
        }
    }

    #[test]
    fn few_common_rows_open_nothing_but_their_number() {
        let error = shared("few", &(11..30)).unwrap_err().to_string();
        assert!(error.contains("19 common keys"), "{error}");
    }
}
