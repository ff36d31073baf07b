use volery_primitives::Block;

use super::*;

const SAMPLES: usize = 60_000;

fn rational(numerator: u64, denominator: u64) -> Rational {
    Rational::new(numerator, denominator).unwrap()
}

fn samples(mechanism: &Mechanism, seed: u128) -> Vec<i64> {
    let mut rng = Prg::new(Block::new(seed));
    (0..SAMPLES).map(|_| mechanism.sample(&mut rng)).collect()
}

/// The formula of the distribution, up to a factor.
fn density(law: Law, scale: f64, x: f64) -> f64 {
    match law {
        Law::Laplace => (-x.abs() / scale).exp(),
        Law::Gaussian => (-x * x / (2.0 * scale * scale)).exp(),
    }
}

/// Bins of equal width around zero, and one more on either side for all beyond.
struct Bins {
    width: i64,
    most: i64,
}

impl Bins {
    fn new(scale: f64) -> Self {
        let width = ((scale / 4.0) as i64).max(1);
        let most = (5.0 * scale) as i64 / width + 1;
        Self { width, most }
    }

    fn count(&self) -> usize {
        2 * self.most as usize + 3
    }

    fn of(&self, sample: i64) -> usize {
        let bin = sample.div_euclid(self.width).clamp(-self.most - 1, self.most + 1);
        (bin + self.most + 1) as usize
    }

    /// The probabilities of all bins: sums of the formula, at 1024 points of a bin at most.
    fn law(&self, law: Law, scale: f64) -> Vec<f64> {
        let far = (40.0 * scale) as i64 / self.width + 2;
        let mut sums = vec![0.0; self.count()];
        for bin in -far..=far {
            let first = bin * self.width;
            let points = self.width.min(1024);
            for point in 0..points {
                let step = self.width as f64 / points as f64;
                // The middle of the numbers for which the point stands.
                let x = first as f64 + point as f64 * step + (step - 1.0) / 2.0;
                sums[self.of(first)] += density(law, scale, x);
            }
        }
        let all: f64 = sums.iter().sum();
        sums.iter().map(|sum| sum / all).collect()
    }

    /// The statistic of a chi-square test, in standard deviations from its mean.
    fn deviation(&self, samples: &[i64], law: &[f64]) -> f64 {
        let mut counts = vec![0.0; self.count()];
        for sample in samples {
            counts[self.of(*sample)] += 1.0;
        }
        let expected = law.iter().map(|p| p * samples.len() as f64);
        let (mut statistic, mut freedom) = (0.0, -1.0);
        // Bins in which few are expected count as one.
        let mut rest = [0.0; 2];
        let mut add = |count: f64, expected: f64| {
            statistic += (count - expected).powi(2) / expected;
            freedom += 1.0;
        };
        for (count, expected) in counts.into_iter().zip(expected) {
            if expected < 20.0 {
                rest = [rest[0] + count, rest[1] + expected];
            } else {
                add(count, expected);
            }
        }
        if rest[1] >= 20.0 {
            add(rest[0], rest[1]);
        }
        (statistic - freedom) / (2.0 * freedom).sqrt()
    }
}

/// Asserts that samples have this distribution, and that they would not pass for one whose scale is
/// off by five per cent.
fn assert_law(mechanism: &Mechanism, seed: u128) {
    let samples = samples(mechanism, seed);
    let scale = mechanism.scale();
    let bins = Bins::new(scale);
    let deviation = |factor: f64| {
        let law = bins.law(mechanism.law, scale * factor);
        bins.deviation(&samples, &law)
    };
    let right = deviation(1.0);
    assert!(right < 4.5, "{mechanism}: {right} standard deviations");
    // A scale far below one leaves almost all samples at zero: there is little to tell apart.
    if scale > 0.6 {
        let wrong = [deviation(1.05), deviation(1.0 / 1.05)];
        assert!(wrong.iter().all(|d| *d > 6.0), "{mechanism}: {wrong:?}");
    }
}

fn laplaces() -> Vec<Mechanism> {
    [
        (1, rational(3, 1)),
        (1, rational(1, 1)),
        (1, rational(2, 7)),
        (5, rational(1, 10)),
        (1000, rational(7, 10)),
        (1 << 20, rational(1, 3)),
        (1, rational(1, 1_000_000)),
        (1 << 40, rational(1, 1)),
    ]
    .into_iter()
    .map(|(sensitivity, epsilon)| Mechanism::laplace(sensitivity, epsilon).unwrap())
    .collect()
}

fn gaussians() -> Vec<Mechanism> {
    let delta = rational(1, 1_000_000);
    [
        (1, rational(20, 1)),
        (1, rational(8, 1)),
        (1, rational(1, 1)),
        (3, rational(1, 2)),
        (1000, rational(7, 10)),
        (1, rational(1, 1_000_000)),
        (1 << 40, rational(1, 1)),
    ]
    .into_iter()
    .map(|(sensitivity, epsilon)| Mechanism::gaussian(sensitivity, epsilon, delta).unwrap())
    .collect()
}

#[test]
fn laplace_noise_has_its_law() {
    for (seed, mechanism) in (0..).zip(laplaces()) {
        assert_law(&mechanism, seed);
    }
}

#[test]
fn gaussian_noise_has_its_law() {
    for (seed, mechanism) in (100..).zip(gaussians()) {
        assert_law(&mechanism, seed);
    }
}

/// Algorithm 1, below and above one, and for numbers whose products would not fit.
#[test]
fn coins_of_exponentials() {
    let mut rng = Prg::new(Block::new(7));
    let large = 1_u128 << 120;
    for (numerator, denominator) in [
        (0, 1),
        (1, 1),
        (1, 3),
        (7, 10),
        (5, 2),
        (3 * large / 4, large),
        (large - 1, large),
        (4 * large + 1, 3 * large),
    ] {
        let count =
            (0..SAMPLES).filter(|_| bernoulli_exp(numerator, denominator, &mut rng)).count() as f64;
        let p = (-(numerator as f64) / denominator as f64).exp();
        let (n, deviation) = (SAMPLES as f64, (p * (1.0 - p) * SAMPLES as f64).sqrt());
        assert!((count - n * p).abs() <= 4.5 * deviation, "{numerator}/{denominator}");
    }
}

/// `sigma` is the least for which zCDP gives `(epsilon, delta)`.
#[test]
fn sigma_is_that_of_the_theorem() {
    for (sensitivity, epsilon, delta) in [
        (1, rational(1, 1), rational(1, 1_000_000)),
        (17, rational(1, 10), rational(1, 1_000_000_000)),
        (3, rational(50, 1), rational(1, 100)),
        (1 << 20, rational(1, 1_000_000), rational(1, 1000)),
    ] {
        let sigma = Mechanism::gaussian(sensitivity, epsilon, delta).unwrap().scale();
        let loss = |sigma: f64| {
            let rho = (sensitivity as f64 / sigma).powi(2) / 2.0;
            rho + 2.0 * (rho * (1.0 / delta.to_f64()).ln()).sqrt()
        };
        assert!(loss(sigma) <= epsilon.to_f64());
        // No more is added than rounding asks for.
        assert!(loss(sigma * 0.9999 - 2.0 / 65_536.0) > epsilon.to_f64());
    }
}

/// Samples beyond the bound are as rare as it says, and not much rarer.
#[test]
fn the_tail() {
    for mechanism in [
        Mechanism::laplace(1000, rational(1, 1)).unwrap(),
        Mechanism::gaussian(1000, rational(1, 1), rational(1, 1000)).unwrap(),
    ] {
        let samples = samples(&mechanism, 3);
        let beyond = |bound: u64| samples.iter().filter(|x| x.unsigned_abs() > bound).count();
        for bits in [1, 4, 8] {
            let (most, bound) = (SAMPLES >> bits, mechanism.tail(bits));
            assert!(beyond(bound) <= most + most / 5, "{mechanism}: {bits}");
        }
        assert_eq!(beyond(mechanism.tail(40)), 0);
        let (four, forty) = (mechanism.tail(4), mechanism.tail(40));
        assert!(beyond(four / 2) > SAMPLES >> 4 && forty < 10 * four, "{mechanism}");
    }
}

#[test]
fn noise_that_does_not_exist() {
    let (one, tiny) = (rational(1, 1), rational(1, 1_000_000));
    assert_eq!(Mechanism::laplace(0, one), Err(Error::Sensitivity));
    assert_eq!(Mechanism::gaussian(0, one, tiny), Err(Error::Sensitivity));
    assert_eq!(Mechanism::gaussian(1, one, one), Err(Error::Delta));
    assert!(Mechanism::gaussian(1, one, rational(1, 2)).is_ok());
    assert!(Mechanism::laplace(1 << 55, one).is_ok());
    assert_eq!(Mechanism::laplace(1 << 40, tiny), Err(Error::Scale));
    assert_eq!(Mechanism::laplace(u64::MAX, rational(1, u64::MAX)), Err(Error::Scale));
    assert_eq!(Mechanism::gaussian(u64::MAX, rational(1, u64::MAX), tiny), Err(Error::Scale));
    assert_eq!(Mechanism::gaussian(1 << 53, one, tiny), Err(Error::Scale));
    // The largest that there are.
    let mut rng = Prg::new(Block::new(1));
    for mechanism in [
        Mechanism::laplace(1 << 55, one).unwrap(),
        Mechanism::gaussian(1 << 52, one, tiny).unwrap(),
    ] {
        let far = (0..1000).filter(|_| mechanism.sample(&mut rng).unsigned_abs() > 1 << 52);
        assert!(far.count() > 800, "{mechanism}");
    }
}

#[test]
fn numbers_in_words() {
    for (text, numerator, denominator) in [
        ("1", 1, 1),
        ("0.5", 1, 2),
        (".25", 1, 4),
        ("3.", 3, 1),
        ("1e-6", 1, 1_000_000),
        ("2.5E3", 2500, 1),
        ("120e-1", 12, 1),
        ("00012", 12, 1),
    ] {
        assert_eq!(text.parse(), Ok(rational(numerator, denominator)), "{text}");
    }
    let none = "|.|0|0.0|-1|+1|1e|e5|1e20|1e-20|1.2.3|1_0|nan|inf| 1|99999999999999999999|\
                1e99999999999|1e-2147483648|9e19|\u{661}";
    for text in none.split('|') {
        assert_eq!(text.parse::<Rational>(), Err(Error::Number), "{text}");
    }
    assert_eq!(rational(6, 4).to_string(), "3/2");
    assert_eq!(rational(8, 4).to_string(), "2");
}
