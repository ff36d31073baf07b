//! A placeholder.
use super::{Dice, Scenario, kill};
use volery_os::world::World;
pub(crate) const SCENARIO: Scenario =
    Scenario { name: "serving", programs: &["server"], calls: 100, faults: &[kill], play };
fn play(_: &World, _: &mut Dice) {}
