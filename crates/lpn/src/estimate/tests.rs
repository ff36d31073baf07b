//! Properties of every estimate.

use super::*;

const CUCKOO: Instance = Instance {
    n: 1 << 14,
    k: 3482,
    t: 192,
    field: Field::F2,
    noise: NoiseShape::Exact,
    local: false,
};

#[test]
fn the_binding_attack_is_the_least_of_all() {
    let all = estimate(&CUCKOO);
    let least = security_bits(&CUCKOO);
    assert!(all.iter().all(|other| other.bits >= least.bits));
    assert!(all.contains(&least));
    assert_eq!(least.attack, "double RLPN");
}

#[test]
fn only_regular_noise_meets_the_attacks_on_blocks() {
    let named = |noise, field| {
        let instance = Instance { noise, field, ..CUCKOO };
        let local = Instance { local: true, ..instance };
        let count = estimate(&instance).len();
        // Domain reduction and low-weight dual words.
        assert_eq!(estimate(&local).len(), count + 2);
        count
    };
    assert_eq!(named(NoiseShape::Exact, Field::F2), 8);
    assert_eq!(named(NoiseShape::Regular, Field::F2), 14);
    assert_eq!(named(NoiseShape::Exact, Field::Fp61), 6);
    assert_eq!(named(NoiseShape::Regular, Field::Gf128), 10);
    assert_eq!(named(NoiseShape::Regular, Field::Gf128Binary), 13);
}

#[test]
fn odd_noise_modulo_two_to_the_64_is_noise_over_gf_2() {
    for noise in [NoiseShape::Exact, NoiseShape::Regular] {
        let binary = Instance { noise, ..CUCKOO };
        let odd = Instance { field: Field::Z64Odd, ..binary };
        assert_eq!(security_bits(&binary), security_bits(&odd));
    }
}

#[test]
fn uniform_noise_modulo_two_to_the_64_loses_half_its_weight() {
    let uniform = Instance { field: Field::Z64Uniform, ..CUCKOO };
    let light = Instance { t: 97, ..CUCKOO };
    assert_eq!(security_bits(&uniform), security_bits(&light));
}

#[test]
fn resisting_agrees_with_the_least_cost() {
    for noise in [NoiseShape::Exact, NoiseShape::Regular] {
        for field in Field::ALL {
            let instance = Instance { noise, field, ..CUCKOO };
            let bits = security_bits(&instance).bits;
            assert!(resists(&instance, bits));
            assert!(!resists(&instance, bits + 0.01));
        }
    }
}

#[test]
fn noise_everywhere_is_no_noise_over_gf_2() {
    for t in [0, 1, 100] {
        let instance = Instance { t: CUCKOO.n - t, ..CUCKOO };
        let bits = security_bits(&instance).bits;
        let expected = match t {
            0 => 3.0 * 3482_f64.log2(),
            t => security_bits(&Instance { t, ..CUCKOO }).bits,
        };
        assert_eq!(bits, expected);
    }
}

/// Each attack returns a number, for all inputs.
#[test]
fn every_instance_has_an_end() {
    for n in [2, 17, 1 << 20, LONGEST] {
        let triples =
            [1, n / 16, n - 1].into_iter().flat_map(|k| [1, n / 1024, n / 3, n].map(|t| (n, k, t)));
        for (n, k, t) in triples {
            for field in Field::ALL {
                for noise in [NoiseShape::Exact, NoiseShape::Regular] {
                    let instance = Instance { n, k, t, field, noise, local: true };
                    if instance.fits().is_err() {
                        continue;
                    }
                    let all = estimate(&instance);
                    let number = all.iter().all(|found| found.bits >= 0.0);
                    assert!(number, "{instance:?}: {all:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_instance_is_said() {
    for (n, k, t, unfit) in [
        (0, 0, 0, Unfit::Length),
        (1, 1, 1, Unfit::Length),
        (LONGEST + 1, 5, 5, Unfit::Length),
        (2, 0, 1, Unfit::Secret),
        (2, 2, 1, Unfit::Secret),
        (2, 1, 0, Unfit::Weight),
        (2, 1, 3, Unfit::Weight),
    ] {
        let fits = Instance { n, k, t, ..CUCKOO }.fits();
        assert_eq!(fits, Err(unfit));
    }
    assert_eq!(CUCKOO.fits(), Ok(()));
}
