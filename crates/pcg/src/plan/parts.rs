//! The dependence of the sessions of the parts of a stream.

use super::*;

/// Parties whose plans differ in any property have different sessions for every part.
#[test]
fn sessions_of_parts_depend_on_the_plan() {
    let session = |plan: &Plan, session: u8, part: &str| {
        let session = SessionId::from_bytes([session; 32]);
        plan.session(RandomOracle::new("a test of plans"), session, part)
    };
    let of = |total, security, trees| {
        let options = PlanOptions { total: Some(total), security, trees, ..PlanOptions::default() };
        Plan::new(Kind::Cot, &options).unwrap()
    };
    let plan = of(1 << 24, Security::Malicious, Trees::Half);
    let mut all = vec![session(&plan, 1, "ot"), session(&plan, 2, "ot"), session(&plan, 1, "base")];
    // The same except for the total, and the same except for the security.
    let mut other = plan.clone();
    other.total = Some((1 << 24) - 1);
    assert_eq!(other.describe(), plan.describe());
    all.push(session(&other, 1, "ot"));
    let mut other = plan.clone();
    other.security = Security::SemiHonest;
    all.push(session(&other, 1, "ot"));
    // Other trees.
    let other = of(1 << 24, Security::Malicious, Trees::Ggm);
    assert_ne!(other.describe(), plan.describe());
    all.push(session(&other, 1, "ot"));
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}
