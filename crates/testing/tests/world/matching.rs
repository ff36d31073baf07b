//! Two organisations match their tables with `--resume`, and start again what failed.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use volery_channel::Cancel;
use volery_matching::Operation;
use volery_os::thread;
use volery_os::time::Duration;
use volery_os::world::{FaultKind, World};
use volery_run::embed;

use super::{
    Dice, Scenario, clock, cut, disk_error, disk_full, identity, kill, leftovers, options,
    power_loss, silence, stall, status, told,
};

const NAMES: [&str; 2] = ["sender", "receiver"];

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "matching",
    programs: &NAMES,
    calls: 60,
    faults: &[
        kill, kill, power_loss, power_loss, cut, silence, stall, disk_error, disk_full, clock,
    ],
    play,
};

/// Attempts of a run of the tool, after which an operator begins anew.
const MOST: usize = 14;

fn clock_jumped(world: &World) -> bool {
    world.struck().iter().any(|kind| matches!(kind, FaultKind::Clock(_)))
}

fn play(world: &World, dice: &mut Dice) {
    let names = NAMES;
    let machines = names.map(|name| world.machine(name));
    let identities = [0, 1].map(|side| identity(world, &machines[side]));
    let own = [dice.size(1..40), dice.size(1..40)];
    let first = dice.below(own[0] + 1);
    let keys = [(0..own[0]).collect::<Vec<_>>(), (first..first + own[1]).collect()];
    let sets = keys.each_ref().map(|keys| keys.iter().copied().collect::<BTreeSet<u64>>());
    let common: Vec<u64> = sets[0].intersection(&sets[1]).copied().collect();
    let (is_lookup, both) = (dice.one_in(3), dice.one_in(5));
    let verb = if is_lookup { Operation::Lookup } else { Operation::Psi };
    let both = both && !is_lookup;
    let protocol = if both || dice.one_in(6) { "vole" } else { "dh" };
    let buckets = dice.in_range(1..4);
    let timeout = dice.of(&[5, 10, 60]);
    let tables = [0, 1].map(|side| {
        let path = machines[side].folder().join("table.csv");
        let rows: String = keys[side].iter().map(|key| format!("k{key},v{key}\n")).collect();
        fs::write(&path, format!("id,value\n{rows}")).expect("a table");
        path
    });
    // What stays on the disk whatever happens: the tables and the identities.
    machines.iter().for_each(|machine| world.settle(machine));
    let has_output = |side: usize| side == 1 || both;
    let expected = || {
        let value = |key: u64| if is_lookup { format!(",v{key}") } else { String::new() };
        let rows: String =
            common.iter().map(|&key| format!("k{key},v{key}{}\n", value(key))).collect();
        let head = if is_lookup { "id,value,value_sender\n" } else { "id,value\n" };
        format!("{head}{rows}")
    };
    let output = |side: usize| machines[side].folder().join("out.csv");
    let start = |side: usize| {
        let mut named = vec![
            ("role", names[side].to_owned()),
            ("input", tables[side].display().to_string()),
            ("key", "id".to_owned()),
            ("protocol", protocol.to_owned()),
            ("buckets", buckets.to_string()),
            ("threads", "1".to_owned()),
            ("force", "true".to_owned()),
            ("identity", identities[side].0.display().to_string()),
            ("peer", identities[1 - side].1.clone()),
            ("wait", "60s".to_owned()),
            ("timeout", format!("{timeout}s")),
            ("resume", machines[side].folder().join("work").display().to_string()),
        ];
        let address = format!("{}:7000", machines[0].address());
        named.push((["listen", "connect"][side], address));
        if both {
            named.push(("both", "true".to_owned()));
        }
        if is_lookup && side == 0 {
            named.push(("value", "value".to_owned()));
        }
        if has_output(side) {
            named.push(("out", output(side).display().to_string()));
        }
        let (named, own) = (options(&named), world.clone());
        world.start(&machines[side], names[side], move || {
            embed::matching(verb, &named, None, false, None, &told(&own, &Cancel::default()))
        })
    };
    let check = |side: usize, is_done: bool| {
        if !has_output(side) {
            return;
        }
        match fs::read_to_string(output(side)) {
            Ok(text) => assert_eq!(text, expected(), "the output of the {}", names[side]),
            Err(_) => assert!(!is_done, "the {} has ended well without its output", names[side]),
        }
    };
    // The sessions of all attempts, each with the file that says it.
    let mut sessions = HashMap::new();
    let mut note_sessions = |side: usize| {
        let work = machines[side].folder().join("work");
        for entry in fs::read_dir(work).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A power failure may leave a session that was not begun without its digits.
            let session = fs::read_to_string(entry.path()).unwrap_or_default();
            if name.starts_with("begun-") && session.len() == 64 {
                let before = sessions.insert((side, session), name.clone());
                assert!(before.is_none_or(|before| before == name), "{name} has an old session");
            }
        }
    };
    let mut done = [false; 2];
    for attempt in 0.. {
        assert!(attempt < MOST, "the run never ends well");
        // Once in a while the operator of a side that is done does not start it again.
        let starts = [0, 1].map(|side| !done[side] || !done[1 - side] && !dice.one_in(4));
        let order = if dice.one_in(2) { [0, 1] } else { [1, 0] };
        let mut running = [None, None];
        for side in order {
            if starts[side] {
                running[side] = Some(start(side));
            }
            thread::sleep(Duration::from_millis(dice.below(3000)));
        }
        for side in order {
            let Some(program) = running[side].take() else { continue };
            let ended = status(program.wait());
            check(side, matches!(ended, Some(Ok(_))));
            note_sessions(side);
            match ended {
                Some(Ok(_)) => done[side] = true,
                Some(Err((code, what))) => {
                    // A side alone waits for nobody; a sender may wait for a receiver that is done.
                    // With a clock that is wrong, a certificate is not valid.
                    let by_clock = code == 3 && what.contains("clock") && clock_jumped(world);
                    assert!([1, 4].contains(&code) || by_clock, "status {code}: {what}");
                    assert!(code != 1 || !world.struck().is_empty(), "{what}");
                    if what.contains("begin a new one") {
                        // What the hint says.
                        for side in [0, 1] {
                            let _ = fs::remove_dir_all(machines[side].folder().join("work"));
                        }
                        done = [false; 2];
                    }
                }
                None => {}
            }
        }
        machines.iter().for_each(|machine| world.mend(machine));
        // A sender whose last word was lost waits in vain for a receiver that is done: no protocol
        // makes both sides certain.
        let is_alone = done[1] && !both && attempt > 3;
        if done == [true; 2] || is_alone {
            break;
        }
        // Only what is left of the faults can break another attempt.
        if attempt > 6 {
            world.end_faults();
        }
    }
    if dice.one_in(3) {
        // A run that has ended well is on the disk.
        machines.iter().for_each(|machine| world.lose_power(machine));
    }
    let of_disk = |kind: &FaultKind| matches!(kind, FaultKind::DiskError | FaultKind::DiskFull);
    let disk_failed = world.struck().iter().any(of_disk);
    for side in [0, 1] {
        check(side, has_output(side));
        // A disk that fails may keep the last run from removing what others left.
        let left = leftovers(machines[side].folder());
        assert!(left.is_empty() || disk_failed, "left by the {}: {left:?}", names[side]);
    }
}
