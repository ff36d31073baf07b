//! The presets hold, by the bound of `params` and by the counts of `data/failures.csv`.

#[allow(dead_code, reason = "its main")]
#[path = "../examples/failures.rs"]
mod failures;

use failures::{Cell, cells};
use volery_okvs::{Preset, Shape, bin_capacity};

/// The failures that the bound allows in the matrices of a cell.
fn expected(cell: &Cell) -> f64 {
    (-cell.shape.failure_bits()).exp2() * cell.matrices as f64
}

#[test]
fn the_file_is_what_the_program_counts() {
    let cells = cells();
    let mut seen = 0;
    for cell in &cells {
        assert_eq!(cell.shape, Shape::of(cell.percent, cell.shape.width, cell.shape.items));
        if cell.matrices * cell.shape.items as u64 <= 11_000_000 {
            let count = failures::failures(&cell.shape, cell.matrices, failures::SEED);
            assert_eq!(count, cell.failures, "{:?}", cell.shape);
            seen += 1;
        }
    }
    assert_eq!(seen, 4);
    assert!(cells.iter().map(|cell| cell.matrices).sum::<u64>() > 1_000_000_000);
}

#[test]
fn no_cell_fails_more_often_than_the_bound() {
    for cell in cells() {
        let (expected, failures) = (expected(&cell), cell.failures as f64);
        let most = expected + 4.0 * expected.sqrt() + 4.0;
        assert!(failures < most, "{:?}: {failures} of {expected}", cell.shape);
        // It is within 3.5 bits where the matrix is long beside the queue's memory.
        if cell.shape.items >= 1 << 16 {
            assert!(failures * 11.0 > expected, "{:?}: of {expected}", cell.shape);
        }
    }
}

/// The most likely `slope * width + constant - log2 items` for the bits of the cells, and the
/// matrix of the covariances: Newton's method, for counts of Poisson's law.
fn fit(cells: &[Cell]) -> ([f64; 2], [[f64; 2]; 2]) {
    let (mut line, mut covariance) = ([0.2, 3.0], [[0.0; 2]; 2]);
    for _ in 0..200 {
        let (mut gradient, mut hessian) = ([0.0; 2], [[0.0; 2]; 2]);
        for cell in cells {
            let at = [cell.shape.width as f64, 1.0].map(|x| -x * std::f64::consts::LN_2);
            let bits = line[0] * cell.shape.width as f64 + line[1];
            let expected = (cell.matrices * cell.shape.items as u64) as f64 * (-bits).exp2();
            for i in 0..2 {
                gradient[i] += at[i] * (cell.failures as f64 - expected);
                for j in 0..2 {
                    hessian[i][j] += at[i] * at[j] * expected;
                }
            }
        }
        let [[a, b], [_, d]] = hessian;
        let determinant = a * d - b * b;
        covariance = [[d, -b], [-b, a]].map(|row| row.map(|x| x / determinant));
        let step = covariance.map(|row| row[0] * gradient[0] + row[1] * gradient[1]);
        let damp = (0.05 / step[0].abs()).min(1.0 / step[1].abs()).min(1.0);
        line = [line[0] + damp * step[0], line[1] + damp * step[1]];
    }
    (line, covariance)
}

/// Bits for each column of the width, of a long queue whose arrivals have Poisson's law: the
/// `s > 0` of `load * (e^s - 1) = s`.
fn asymptotic_slope(preset: Preset) -> f64 {
    let mut slope: f64 = 0.2;
    for _ in 0..1000 {
        slope = (1.0 + slope * preset.percent() as f64 / 100.0).ln();
    }
    slope / std::f64::consts::LN_2
}

#[test]
fn the_counts_extrapolate_to_more_than_the_bound() {
    // Slope and its standard error, bits at 2^28 items and their lower limit at 99 %: docs/okvs.md.
    let documented = [
        (Preset::Band10, (0.267, 0.0063, 45.3, 42.3)),
        (Preset::Band5, (0.149, 0.0032, 54.8, 51.5)),
    ];
    for (preset, (slope, error, bits, low)) in documented {
        let long = |cell: &Cell| cell.percent == preset.percent() && cell.shape.items == 1 << 16;
        let (line, covariance) = fit(&cells().into_iter().filter(long).collect::<Vec<_>>());
        let width = preset.width() as f64;
        let cross = 2.0 * covariance[0][1] * width;
        let variance = covariance[0][0] * width * width + cross + covariance[1][1];
        let found = line[0] * width + line[1] - 28.0;
        assert!((line[0] - slope).abs() < 6e-4, "{preset:?}: slope {}", line[0]);
        assert!((covariance[0][0].sqrt() - error).abs() < 6e-5, "{preset:?}");
        assert!((found - bits).abs() < 0.06, "{preset:?}: {found}");
        assert!((found - 2.576 * variance.sqrt() - low).abs() < 0.06, "{preset:?}: {variance}");
        assert!(preset.failure_bits(1 << 28) < bits);
        // Matrices of 2^16 rows are short yet for the queue of Band5: its slope is steep.
        let off = (line[0] - asymptotic_slope(preset)) / error;
        assert!((-1.0..3.1).contains(&off), "{preset:?}: {off} standard errors");
    }
}

#[test]
fn the_bound_grows_with_the_width_as_the_queue_says() {
    for preset in Preset::ALL {
        let bits = |width| Shape::of(preset.percent(), width, 1 << 28).failure_bits();
        let slope = (bits(preset.width() + 64) - bits(preset.width())) / 64.0;
        assert!((slope - asymptotic_slope(preset)).abs() < 1e-4, "{preset:?}: {slope}");
    }
}

#[test]
fn presets_hold_to_two_to_the_28() {
    for preset in [Preset::Band10, Preset::Band5] {
        let sizes = (0..28).flat_map(|log| [1 << log, (1 << log) + 1, 3 << log >> 1]);
        for items in sizes.chain([0, 1 << 28]) {
            assert!(preset.holds(items, 1, 44.0), "{preset:?}, {items} items");
        }
        for bins in (4..=10).map(|log| 1 << log) {
            let capacity = bin_capacity(1 << 28, bins, 44.0);
            assert!(preset.holds(capacity, bins as usize, 44.0), "{preset:?}, {bins} bins");
        }
    }
    for items in 0..=22 {
        assert!(Preset::Band9.holds(1 << items, 1, 43.0), "2^{items} items");
    }
    assert!(Preset::Band9.holds(bin_capacity(1 << 22, 8, 44.0), 8, 43.0));
}

#[test]
fn the_bits_of_the_presets_are_documented() {
    let tenths = |preset: Preset| {
        [10, 16, 20, 24, 28].map(|log: u32| (10.0 * preset.failure_bits(1 << log)).round())
    };
    assert_eq!(tenths(Preset::Band10), [631.0, 561.0, 521.0, 481.0, 441.0]);
    assert_eq!(tenths(Preset::Band9), [571.0, 500.0, 460.0, 420.0, 380.0]);
    assert_eq!(tenths(Preset::Band5), [692.0, 610.0, 569.0, 529.0, 489.0]);
}

#[test]
fn the_smallest_width_for_40_bits_is_documented() {
    let widths = |percent| {
        [10, 16, 20, 24, 28].map(|log: u32| {
            let holds = |width| Shape::of(percent, width, 1 << log).failure_bits() >= 40.0;
            (32..512).find(|&width| holds(width)).unwrap_or(512)
        })
    };
    assert_eq!(widths(110), [173, 197, 212, 227, 241]);
    assert_eq!(widths(105), [310, 362, 391, 420, 448]);
}

/// The probability that a binomial variable exceeds `capacity`, by the recursion of its law.
fn tail(items: usize, bins: f64, capacity: usize) -> f64 {
    let mut law = vec![0.0; items + 1];
    law[0] = 1.0;
    for _ in 0..items {
        for count in (0..law.len()).rev() {
            let before = if count > 0 { law[count - 1] } else { 0.0 };
            law[count] = law[count] * (1.0 - 1.0 / bins) + before / bins;
        }
    }
    law[capacity + 1..].iter().sum()
}

#[test]
fn a_capacity_is_the_smallest_that_holds() {
    for (items, bins, bits) in [(100, 2, 10.0), (300, 7, 20.0), (1000, 64, 40.0), (40, 40, 30.0)] {
        let capacity = bin_capacity(items, bins, bits);
        let exceeded = |capacity| bins as f64 * tail(items as usize, bins as f64, capacity);
        assert!(exceeded(capacity) <= (-bits).exp2());
        assert!(exceeded(capacity - 1) > (-bits).exp2());
    }
    assert_eq!(bin_capacity(1000, 1, 40.0), 1000);
    assert_eq!(bin_capacity(0, 3, 40.0), 0);
    // 1.5 % over the mean for bins of 2^18, 0.8 % for bins of 2^20: docs/okvs.md.
    let over = |items: u64, bins: u64| {
        let mean = items as f64 / bins as f64;
        (1e4 * (bin_capacity(items, bins, 40.0) as f64 / mean - 1.0)).round()
    };
    assert_eq!(over(1 << 24, 64), 148.0);
    assert_eq!(over(1 << 24, 16), 70.0);
    assert_eq!(over(1 << 28, 256), 76.0);
}
