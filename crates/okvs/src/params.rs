//! Sizes of a random band matrix, and how rarely such a matrix fails.
//!
//! A row of the matrix has a uniform start, a 1 there, and `width - 1` random bits behind it; an
//! encoding fails if the rows are linearly dependent. [`Shape::failure_bits`] is a proven bound on
//! that probability over ideal rows, not an extrapolation: `docs/okvs.md` has the proof, and
//! `tests/params.rs` holds it against the counts of `data/failures.csv`.

/// Arrivals of one column above this number have a probability below `2^-280`.
const ARRIVALS: usize = 64;

/// Published sizes of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// 1.10 columns an item, width 256: the fastest one.
    Band10,
    /// 1.09 columns an item, width 256: up to some millions of items.
    Band9,
    /// 1.05 columns an item, width 512: the smaller one.
    Band5,
}

impl Preset {
    /// All presets, the fastest first.
    pub const ALL: [Self; 3] = [Self::Band10, Self::Band9, Self::Band5];

    /// Columns for 100 items, without the columns of the last band.
    pub const fn percent(self) -> usize {
        match self {
            Self::Band10 => 110,
            Self::Band9 => 109,
            Self::Band5 => 105,
        }
    }

    /// Columns that a row covers.
    pub const fn width(self) -> usize {
        match self {
            Self::Band10 | Self::Band9 => 256,
            Self::Band5 => 512,
        }
    }

    /// A number `b` such that an encoding of `items` items fails with probability at most `2^-b`.
    ///
    /// For several matrices of this size subtract the binary logarithm of their number
    /// (the union bound); [`holds`](Self::holds) does.
    pub fn failure_bits(self, items: usize) -> f64 {
        Shape::new(self, items).failure_bits()
    }

    /// Whether `bins` encodings of at most `items` items each all succeed but with probability
    /// `2^-statistical_bits`.
    pub fn holds(self, items: usize, bins: usize, statistical_bits: f64) -> bool {
        self.failure_bits(items) - (bins as f64).log2() >= statistical_bits
    }
}

/// Sizes of one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows: the keys of an encoding.
    pub items: usize,
    /// Columns: the values of an encoding.
    pub columns: usize,
    /// Columns that a row covers, from its start on.
    pub width: usize,
}

impl Shape {
    /// The matrix of a preset.
    pub fn new(preset: Preset, items: usize) -> Self {
        Self::of(preset.percent(), preset.width(), items)
    }

    /// `ceil(items * percent / 100) + width` columns.
    ///
    /// The rows of a band have fewer starts than columns. The last term gives it back what that
    /// takes, so that the load, items for each start, is below `100 / percent` for every number of
    /// items, and one bound covers the small numbers too.
    ///
    /// # Panics
    /// If the columns are more than a `usize` counts.
    pub fn of(percent: usize, width: usize, items: usize) -> Self {
        let load = (items as u128 * percent as u128).div_ceil(100) + width as u128;
        let columns = usize::try_from(load).expect("columns of a band matrix are a usize");
        Self { items, columns, width }
    }

    /// The number of columns where a row can start.
    pub const fn starts(&self) -> usize {
        self.columns - self.width + 1
    }

    /// A number `b` such that the rows are dependent with probability at most `2^-b`.
    ///
    /// Elimination by columns, the oldest row first, is a queue: a row waits until it becomes a
    /// pivot, and vanishes if it waits for `width` columns. The bound adds two rates, of the queue
    /// growing to a level and of a row below that level waiting too long, and takes the best
    /// level. It needs about `width^2` additions; it is 0 where the bound says nothing.
    ///
    /// # Panics
    /// If there are as many items as starts, or if the width is 0.
    pub fn failure_bits(&self) -> f64 {
        assert!(self.width > 0, "a band of width 0");
        let load = self.items as f64 / self.starts() as f64;
        assert!(load < 1.0, "{} items for {} starts", self.items, self.starts());
        let arrivals = poisson(load);
        let queue = stationary(&arrivals, 2 * self.width);
        let late = unserved(self.width);
        (self.width.saturating_sub(24)..=self.width)
            .map(|level| {
                let above: f64 = queue[level..].iter().sum();
                let reached = queue[level] * (1.0 - load) / (1.0 - above);
                let expired = expired_below(level, &arrivals, &queue, &late);
                // The factor of 2 is the price of Poisson arrivals for a fixed number of rows.
                -(2.0 * self.starts() as f64 * (reached + expired)).log2()
            })
            .fold(0.0, f64::max)
    }
}

/// The probabilities of `0..ARRIVALS` rows that start in one column.
fn poisson(load: f64) -> [f64; ARRIVALS] {
    let mut term = (-load).exp();
    std::array::from_fn(|count| {
        if count > 0 {
            term *= load / count as f64;
        }
        term
    })
}

/// The stationary law of the number of rows that wait, `0..=levels`.
///
/// One column takes the number from `q` to `q + b - 1` with `b` arrivals, except that it stays at
/// `q` with probability `2^-q` if there are none. It falls by one at most, so the flow down from
/// `q + 1` equals the flow up across it, which gives each term from the ones before. To cut off
/// the law at `levels` and scale it to 1 makes each term larger, never smaller.
fn stationary(arrivals: &[f64; ARRIVALS], levels: usize) -> Vec<f64> {
    let mut at_least = *arrivals;
    for count in (0..ARRIVALS - 1).rev() {
        at_least[count] += at_least[count + 1];
    }
    let mut queue = vec![1.0];
    for level in 0..levels {
        let from = (level + 3).saturating_sub(ARRIVALS);
        let up: f64 = (from..=level).map(|q| queue[q] * at_least[level - q + 2]).sum();
        queue.push(up / (arrivals[0] * (1.0 - half_to(level + 1))));
    }
    let total: f64 = queue.iter().sum();
    queue.iter_mut().for_each(|term| *term /= total);
    queue
}

/// The probability, by its place in the queue (from 1), that a row is not served in the
/// `width - 1` columns behind its first.
///
/// Each row has a fair coin in each column, and the first row with a 1 is served: place `p` is
/// served with `2^-p`, and comes one place forward if a place before it is.
fn unserved(width: usize) -> Vec<f64> {
    let mut late = vec![1.0; width + 1];
    late[0] = 0.0;
    for _ in 1..width {
        for place in (1..=width).rev() {
            late[place] =
                (1.0 - half_to(place - 1)) * late[place - 1] + half_to(place) * late[place];
        }
    }
    late
}

/// The expected number of rows of one column that wait too long, where fewer than `level` rows
/// wait before and behind that column.
fn expired_below(level: usize, arrivals: &[f64], queue: &[f64], late: &[f64]) -> f64 {
    (0..level)
        .map(|q| {
            // In its first column the first new row is served unless an old one is.
            let mut rows = (1.0 - half_to(q)) * late[q];
            let mut sum = 0.0;
            for (count, probability) in arrivals.iter().enumerate().skip(1).take(level - q) {
                if count > 1 {
                    rows += late[q + count - 1];
                }
                sum += probability * rows;
            }
            queue[q] * sum
        })
        .sum()
}

/// `2^-exponent`, made from its bits: zero if that is no normal number.
fn half_to(exponent: usize) -> f64 {
    const BIAS: u64 = 1023;
    f64::from_bits(BIAS.saturating_sub(exponent as u64) << (f64::MANTISSA_DIGITS - 1))
}

/// The smallest capacity that none of `bins` bins exceeds, but with probability `2^-bits`, when
/// each of `items` items falls into a uniform bin.
///
/// The tail of the binomial law is exact, the bins are added (the union bound). Its logarithm is
/// good to `2^-10` for up to `2^40` items.
///
/// # Panics
/// If there is no bin.
pub fn bin_capacity(items: u64, bins: u64, bits: f64) -> usize {
    assert!(bins > 0, "no bin");
    let (mut low, mut high) = (items / bins, items);
    while low < high {
        let middle = low + (high - low) / 2;
        if log2_tail(items, bins, middle) + (bins as f64).log2() <= -bits {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low as usize
}

/// The binary logarithm of the probability that more than `capacity` of `items` items, at least
/// the mean, fall into one of `bins` bins, of which there are two or more.
fn log2_tail(items: u64, bins: u64, capacity: u64) -> f64 {
    let share = 1.0 / bins as f64;
    let (mut count, n) = (capacity as f64 + 1.0, items as f64);
    let first = ln_factorial(n) - ln_factorial(count) - ln_factorial(n - count)
        + count * share.ln()
        + (n - count) * (-share).ln_1p();
    // The terms fall: the sum is in units of the first.
    let (mut term, mut sum) = (1.0, 1.0);
    while term > f64::EPSILON * sum {
        term *= (n - count) / (count + 1.0) * share / (1.0 - share);
        sum += term;
        count += 1.0;
    }
    first / std::f64::consts::LN_2 + f64::log2(sum)
}

/// Stirling's series, behind a product that moves its argument above 16.
fn ln_factorial(n: f64) -> f64 {
    if n < 16.0 {
        return ln_factorial(n + 1.0) - (n + 1.0).ln();
    }
    let correction = (1.0 - 1.0 / (30.0 * n * n)) / (12.0 * n);
    (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + correction
}
