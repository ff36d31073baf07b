//! A prepared server with budgets, and clients that ask again until they are answered.

use std::fs;
use std::sync::Arc;

use volery_channel::Cancel;
use volery_matching::Operation;
use volery_os::sync::mpsc;
use volery_os::thread;
use volery_os::time::Duration;
use volery_os::world::{FaultKind, World};
use volery_run::embed;
use volery_run::guard::guarded;
use volery_run::reporter::Reporter;
use volery_serve::Arguments;

use super::{
    Dice, Scenario, Told, clock, cut, disk_error, disk_full, identity, kill, leftovers, options,
    power_loss, silence, stall, status, told,
};

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "serving",
    programs: &["server", "server", "ada", "kurt"],
    calls: 150,
    faults: &[
        kill, power_loss, power_loss, power_loss, cut, silence, stall, disk_error, disk_error,
        disk_full, clock,
    ],
    play,
};

const CLIENTS: [&str; 2] = ["ada", "kurt"];

/// What the server counted for a client, as its journal has it.
fn spent(journal: &str, print: &str) -> u64 {
    let lines = journal.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let own = lines.filter(|words| words.len() == 4 && print.ends_with(words[0]));
    own.map(|words| words[2].parse::<u64>().expect("a number of keys")).sum()
}

/// What became of the queries of a client.
#[derive(Default)]
struct Account {
    keys: u64,
    budget: u64,
    asked: u64,
    answered: u64,
}

fn play(world: &World, dice: &mut Dice) {
    let machine = world.machine("server");
    let machines = CLIENTS.map(|name| world.machine(name));
    let (own, print) = identity(world, &machine);
    let identities = [0, 1].map(|client| identity(world, &machines[client]));
    let rows = dice.size(1..60);
    let table = |from: u64, to: u64| {
        let rows: String = (from..to).map(|key| format!("k{key}\n")).collect();
        format!("id\n{rows}")
    };
    let write = |path: std::path::PathBuf, text: String| {
        fs::write(&path, text).expect("a file of a machine");
        path.display().to_string()
    };
    let input = write(machine.folder().join("table.csv"), table(0, rows));
    let mut accounts = [0, 1].map(|_| {
        let keys = dice.size(1..8);
        Account { keys, budget: keys * dice.in_range(1..8), ..Account::default() }
    });
    let firsts = [dice.below(rows + 3), dice.below(rows + 3)];
    let a_day = dice.one_in(3);
    let clients: String = (0..2)
        .map(|client| {
            let Account { keys, budget, .. } = accounts[client];
            let a_day =
                if a_day { format!("keys_per_day = {}\n", 2 * keys) } else { String::new() };
            let (name, print) = (CLIENTS[client], &identities[client].1);
            format!(
                "[[client]]\nname = '{name}'\nfingerprint = '{print}'\nkeys = {budget}\n{a_day}"
            )
        })
        .collect();
    let clients = write(machine.folder().join("clients.toml"), clients);
    let tables = [0, 1].map(|client| {
        let from = firsts[client];
        write(
            machines[client].folder().join("table.csv"),
            table(from, from + accounts[client].keys),
        )
    });
    let pins = machines
        .each_ref()
        .map(|machine| write(machine.folder().join("server.pin"), format!("{print}\n")));
    world.settle(&machine);
    machines.iter().for_each(|machine| world.settle(machine));
    let address = format!("{}:7000", machine.address());
    let store = machine.folder().join("store");
    let timeout = dice.of(&["5s", "10s", "60s"]);

    let serve = |rotates: bool| {
        let mut named = vec![
            ("listen", address.clone()),
            ("identity", own.display().to_string()),
            ("clients", clients.clone()),
            ("store", store.display().to_string()),
        ];
        if rotates {
            named.push(("rotate", "true".to_owned()));
        }
        let common = options(&[("threads", "1".to_owned()), ("timeout", timeout.to_owned())]);
        let table = options(&[("input", input.clone()), ("key", "id".to_owned())]);
        let mut all = Arguments::default();
        volery_options::fill(&options(&named), &mut [&mut all.options]).expect("its own options");
        volery_options::fill(&common, &mut [&mut all.common.run]).expect("those of every run");
        volery_options::fill(&table, &mut [&mut all.table]).expect("those of the table");
        let (stop, world_of) = (Cancel::default(), world.clone());
        let ended = stop.clone();
        let program = world.start(&machine, "server", move || {
            let told = Arc::new(Told(world_of, World::own_program()));
            let reporter = Reporter::of_caller(told, ended, "serve", None);
            let (_keep, reload) = mpsc::channel();
            guarded(&reporter, || volery_serve::run(&all, reload, &reporter))
        });
        (program, stop)
    };
    let ask = |client: usize| {
        let folder = machines[client].folder();
        let named = options(&[
            ("role", "receiver".to_owned()),
            ("protocol", "served".to_owned()),
            ("input", tables[client].clone()),
            ("key", "id".to_owned()),
            ("connect", address.clone()),
            ("identity", identities[client].0.display().to_string()),
            ("peer", pins[client].clone()),
            ("filter", folder.join("filter").display().to_string()),
            ("follow_key", "true".to_owned()),
            ("out", folder.join("out.csv").display().to_string()),
            ("force", "true".to_owned()),
            ("threads", "1".to_owned()),
            ("wait", "20s".to_owned()),
            ("timeout", timeout.to_owned()),
        ]);
        let own = world.clone();
        world.start(&machines[client], CLIENTS[client], move || {
            embed::matching(
                Operation::Psi,
                &named,
                None,
                false,
                None,
                &told(&own, &Cancel::default()),
            )
        })
    };

    let of_disk = |kind: &FaultKind| matches!(kind, FaultKind::DiskError | FaultKind::DiskFull);
    let of_clock = |kind: &FaultKind| matches!(kind, FaultKind::Clock(_));
    let mut running = None;
    let rounds = dice.in_range(2..9);
    for round in 0..rounds + 4 {
        let is_last = round >= rounds;
        if is_last {
            world.end_faults();
            world.mend(&machine);
            machines.iter().for_each(|machine| world.mend(machine));
        }
        if running.is_none() && (dice.one_in(2) || is_last) {
            // The budget of a day is there again.
            thread::sleep(Duration::from_secs(90_000));
        }
        let (program, stop) = running.take().unwrap_or_else(|| serve(false));
        thread::sleep(Duration::from_millis(dice.in_range(1..900)));
        let asking = [dice.one_in(2), true].map(|asks| asks || is_last);
        let mut asked = [None, None];
        for client in [0, 1] {
            if asking[client] {
                accounts[client].asked += accounts[client].keys;
                asked[client] = Some(ask(client));
                thread::sleep(Duration::from_millis(dice.below(400)));
            }
        }
        for client in [0, 1] {
            let Some(program) = asked[client].take() else { continue };
            let account = &mut accounts[client];
            match status(program.wait()) {
                None => {}
                Some(Ok(_)) => {
                    account.answered += account.keys;
                    let common = table(firsts[client], rows.min(firsts[client] + account.keys));
                    let out = fs::read_to_string(machines[client].folder().join("out.csv"));
                    assert_eq!(out.expect("an output"), common, "the rows of {}", CLIENTS[client]);
                }
                Some(Err((2, what))) if what.contains("may still ask for") => {
                    let has_reason = account.asked > account.budget || a_day && !is_last;
                    assert!(has_reason || a_day, "too early: {what}");
                }
                // Its own certificate is not valid, or the other one's is not.
                Some(Err((1 | 3, what))) if what.contains("clock") => {
                    assert!(world.struck().iter().any(of_clock), "{what}");
                }
                Some(Err((code, what))) => {
                    let struck = world.struck();
                    let has_reason =
                        !struck.is_empty() && (code == 4 || struck.iter().any(of_disk));
                    let has_reason = has_reason && !is_last;
                    let has_reason = has_reason || code == 4 && is_last && round < rounds + 2;
                    assert!(has_reason, "status {code} for {}: {what}", CLIENTS[client]);
                }
            }
            assert!(
                account.answered <= account.budget,
                "{} got more than its budget",
                CLIENTS[client]
            );
        }
        if program.is_over() || is_last || dice.one_in(2) {
            stop.cancel();
            if let Some(Err((code, what))) = status(program.wait()) {
                let struck = world.struck();
                let by_disk = code == 1 && struck.iter().any(of_disk);
                let by_clock = what.contains("check the clock") && struck.iter().any(of_clock);
                let is_told = what.starts_with("cancelled");
                assert!(
                    is_told || (by_disk || by_clock) && !is_last,
                    "the server ended with status {code}: {what}"
                );
            }
            if dice.one_in(4) && !is_last {
                // Another key: clients fetch the filter again.
                let (program, stop) = serve(true);
                thread::sleep(Duration::from_secs(2));
                stop.cancel();
                let _ = status(program.wait());
            }
            world.mend(&machine);
        } else {
            running = Some((program, stop));
        }
    }
    if let Some((program, stop)) = running {
        stop.cancel();
        assert!(matches!(status(program.wait()), Some(Ok(()))), "the server ends well when told");
    }
    let journal = fs::read_to_string(store.join("spent")).expect("a journal");
    for ((account, name), (_, print)) in accounts.iter().zip(CLIENTS).zip(&identities) {
        let counted = spent(&journal, print);
        assert!(counted >= account.answered, "{name}: {counted} counted, {}", account.answered);
        assert!(counted <= account.asked, "{name}: {counted} counted, {} asked", account.asked);
        // Without a clock that jumped, the last rounds answer all that the budget has.
        let left = account.budget.saturating_sub(counted);
        let is_clear = !a_day || !world.struck().iter().any(of_clock);
        assert!(account.answered > 0 || left < account.keys || !is_clear, "{name} got no answer");
    }
    if !world.struck().iter().any(of_disk) {
        // Each start writes the journal anew, but not which table is served.
        let left = leftovers(&store).into_iter().filter(|name| name.starts_with(".spent"));
        assert_eq!(left.count(), 0, "files of journals are left in the store");
    }
}
