//! Whole runs in simulated worlds: programs on machines with a network, disks and a clock, and the
//! faults that befall them, all from one seed.
//!
//! A scenario starts programs as an operator does, starts them again when they end with an error,
//! and panics where something is not as it must be. `docs/reliability.md` has the faults, what must
//! hold, and what was found.
//!
//! ```text
//! cargo test -p volery-testing --test world           300 seeds
//! VOLERY_WORLD_SEEDS=10000 VOLERY_WORLD_FIRST=300 ..  others
//! VOLERY_WORLD_SCENARIO=serving ..                    of one scenario
//! VOLERY_WORLD='matching 17 sender@120=Kill' ..       one run, with its timeline
//! ```

mod deviating;
mod matching;
mod meeting;
mod serving;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use volery_channel::Cancel;
use volery_os::world::{Exit, Fault, FaultKind, Machine, Outcome, World, run};
use volery_run::embed::{self, Events, Failure, Level, Run};

/// Seeds of a test, shared by the scenarios; and those within which a planted fault is found.
const SEEDS: u64 = 300;
const PLANTED: u64 = 3000;

/// What can happen in a world, and to whom.
struct Scenario {
    name: &'static str,
    /// The programs that faults strike.
    programs: &'static [&'static str],
    /// About as many calls has a program in a run without faults.
    calls: u64,
    faults: &'static [fn(&mut Dice) -> FaultKind],
    play: fn(&World, &mut Dice),
}

/// In turn.
static SCENARIOS: [Scenario; 7] = [
    matching::SCENARIO,
    serving::SCENARIO,
    meeting::SCENARIO,
    matching::SCENARIO,
    serving::SCENARIO,
    meeting::SCENARIO,
    deviating::SCENARIO,
];

/// Numbers that follow from a seed, apart from those of the world.
struct Dice {
    state: u64,
    /// The largest size.
    most: u64,
}

impl Dice {
    fn new(seed: u64, most: u64) -> Self {
        let mut dice = Self { state: seed, most };
        dice.below(2);
        dice
    }

    fn below(&mut self, bound: u64) -> u64 {
        let next = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d);
        self.state = next.wrapping_add(0x1405_7b7e_f767_814f);
        ((self.state ^ (self.state >> 29)) >> 16) % bound
    }

    /// A number of rows, or of what else makes a run large.
    fn size(&mut self, range: Range<u64>) -> u64 {
        self.in_range(range).min(self.most)
    }

    fn in_range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// One time in so many.
    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Faults that every scenario has.
fn kill(_: &mut Dice) -> FaultKind {
    FaultKind::Kill
}

fn power_loss(_: &mut Dice) -> FaultKind {
    FaultKind::PowerLoss
}

fn cut(_: &mut Dice) -> FaultKind {
    FaultKind::Cut
}

fn silence(dice: &mut Dice) -> FaultKind {
    FaultKind::Silence(Duration::from_secs(1 << dice.below(8)))
}

fn stall(dice: &mut Dice) -> FaultKind {
    FaultKind::Stall(Duration::from_secs(1 << dice.below(10)))
}

fn disk_error(_: &mut Dice) -> FaultKind {
    FaultKind::DiskError
}

fn disk_full(_: &mut Dice) -> FaultKind {
    FaultKind::DiskFull
}

fn clock(dice: &mut Dice) -> FaultKind {
    let seconds = dice.of(&[60, 3600, 86_400, 30 * 86_400]);
    FaultKind::Clock(if dice.one_in(2) { seconds } else { -seconds })
}

/// One run of a scenario.
#[derive(Clone)]
struct Plan {
    scenario: &'static Scenario,
    seed: u64,
    /// The largest size.
    most: u64,
    faults: Vec<Fault>,
}

impl Plan {
    /// The run of a seed.
    fn new(scenario: &'static Scenario, seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0xfa17, u64::MAX);
        let mut faults: Vec<Fault> = Vec::new();
        for _ in 0..dice.below(6) {
            // Early calls and late ones.
            let most = dice.of(&[12, 40, scenario.calls, 2 * scenario.calls]);
            let (mut program, mut call) = (dice.of(scenario.programs), dice.in_range(1..most + 2));
            // Some faults are worse right after another one.
            if let Some(last) = faults.last().filter(|_| dice.one_in(2)) {
                (program, call) = (last.program, last.call + dice.in_range(1..6));
            }
            faults.push(Fault { program, call, kind: dice.of(scenario.faults)(&mut dice) });
        }
        Self { scenario, seed, most: u64::MAX, faults }
    }

    /// As [`Plan::line`] wrote it.
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        let name = words.next().expect("a scenario");
        let scenario = SCENARIOS.iter().find(|one| one.name == name).expect("a known scenario");
        let seed = words.next().and_then(|seed| seed.parse().ok()).expect("a seed");
        let mut most = u64::MAX;
        let faults = words.filter_map(|word| {
            let (place, kind) = word.split_once('=').expect("PROGRAM@CALL=FAULT");
            if place == "sizes" {
                most = kind.parse().expect("a size");
                return None;
            }
            let (program, call) = place.split_once('@').expect("PROGRAM@CALL");
            let program = scenario.programs.iter().find(|one| **one == program);
            let (kind, number) = kind.split_once(':').unwrap_or((kind, "0"));
            let number: i64 = number.parse().expect("a number of seconds");
            let time = Duration::from_secs(number.unsigned_abs());
            let kind = match kind {
                "Kill" => FaultKind::Kill,
                "PowerLoss" => FaultKind::PowerLoss,
                "Cut" => FaultKind::Cut,
                "DiskError" => FaultKind::DiskError,
                "DiskFull" => FaultKind::DiskFull,
                "Silence" => FaultKind::Silence(time),
                "Stall" => FaultKind::Stall(time),
                "Clock" => FaultKind::Clock(number),
                other => panic!("no fault is called {other}"),
            };
            let (program, call) = (*program.expect("a program"), call.parse().expect("a number"));
            Some(Fault { program, call, kind })
        });
        let faults = faults.collect();
        Self { scenario, seed, most, faults }
    }

    fn line(&self) -> String {
        let mut line = format!("{} {}", self.scenario.name, self.seed);
        if self.most != u64::MAX {
            let _ = write!(line, " sizes={}", self.most);
        }
        for Fault { program, call, kind } in &self.faults {
            let kind = match kind {
                FaultKind::Silence(time) => format!("Silence:{}", time.as_secs()),
                FaultKind::Stall(time) => format!("Stall:{}", time.as_secs()),
                FaultKind::Clock(seconds) => format!("Clock:{seconds}"),
                other => format!("{other:?}"),
            };
            let _ = write!(line, " {program}@{call}={kind}");
        }
        line
    }

    fn run(&self) -> Outcome<()> {
        // Files in memory: their numbers do not come again, and a sync takes no time.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let place = tempfile::tempdir_in(place).expect("a folder for the world");
        let mut dice = Dice::new(self.seed, self.most);
        run(place.path(), self.seed, &self.faults, |world| (self.scenario.play)(world, &mut dice))
    }

    /// With as few faults as still fail, and as small.
    fn shrink(mut self) -> Self {
        let mut place = 0;
        while place < self.faults.len() {
            let mut fewer = self.clone();
            fewer.faults.remove(place);
            match fewer.run().result {
                Err(_) => self = fewer,
                Ok(()) => place += 1,
            }
        }
        let smaller = [1, 2, 4, 8, 16].map(|most| Self { most, ..self.clone() });
        smaller.into_iter().find(|plan| plan.run().result.is_err()).unwrap_or(self)
    }

    /// The failure, for people.
    fn report(self) -> String {
        let least = self.shrink();
        let outcome = least.run();
        let lines = outcome.timeline.iter().map(|event| format!("{event}\n"));
        let timeline: String = lines.collect();
        let what = outcome.result.err().unwrap_or_else(|| "it does not fail again".to_owned());
        format!(
            "{timeline}{what}\nreplay: VOLERY_WORLD='{}' cargo test -p volery-testing --test world -- --nocapture",
            least.line()
        )
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What must hold holds in every world, and the first seeds of each scenario repeat to the step.
#[test]
fn every_world_ends_well() {
    if let Ok(line) = std::env::var("VOLERY_WORLD") {
        volery_run::options::process_pool(1).expect("nothing has computed yet");
        let outcome = Plan::parse(&line).run();
        let mut out = std::io::stdout();
        for event in &outcome.timeline {
            let _ = writeln!(out, "{event}");
        }
        let _ = writeln!(out, "{:?} after {:?}", outcome.result, outcome.lasted);
        assert!(outcome.result.is_ok());
        return;
    }
    // A server asks for the pool of the process, which else is there before it.
    volery_run::options::process_pool(1).expect("nothing has computed yet");
    // Panics of a world are results here; those of threads that it catches say nothing.
    std::panic::set_hook(Box::new(|_| ()));
    let only = std::env::var("VOLERY_WORLD_SCENARIO").ok();
    let first = number("VOLERY_WORLD_FIRST", 0);
    // A planted fault may take more than those of every day.
    let seeds = if std::env::var_os("VOLERY_MUTANT").is_some() { PLANTED } else { SEEDS };
    let last = first + number("VOLERY_WORLD_SEEDS", seeds);
    let next = AtomicU64::new(first);
    let failed = Mutex::new(None);
    let struck = AtomicUsize::new(0);
    let test = || {
        while failed.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return;
            }
            let scenario = match &only {
                Some(name) => SCENARIOS.iter().find(|one| one.name == name).expect("its name"),
                None => &SCENARIOS[(seed % SCENARIOS.len() as u64) as usize],
            };
            let plan = Plan::new(scenario, seed);
            let outcome = plan.run();
            struck.fetch_add(plan.faults.len(), Ordering::Relaxed);
            let repeats = seed - first >= 12 || plan.run().hash == outcome.hash;
            if outcome.result.is_err() || !repeats {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert((plan, repeats));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(test)));
    });
    let _ = std::panic::take_hook();
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => assert!(struck.into_inner() > 0 || last - first < 10, "no seed has a fault"),
        Some((plan, false)) => panic!("does not repeat: VOLERY_WORLD='{}'", plan.line()),
        Some((plan, true)) => panic!("{}", plan.report()),
    }
}

/// Lines of a run go to the timeline.
struct Told(World, usize);

impl Events for Told {
    fn line(&self, _: Level, text: &str, _: &str) {
        self.0.note(self.1, format!("says: {text}"));
    }

    fn phase(&self, _: &str, _: u64) {}

    fn done(&self, _: u64) {}
}

/// A call of a program of this world.
fn told(world: &World, cancel: &Cancel) -> Run {
    Run::new(Arc::new(Told(world.clone(), World::own_program())), cancel.clone())
}

/// Options by name.
fn options(pairs: &[(&str, String)]) -> Vec<(String, OsString)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect()
}

/// Makes an identity on a machine; its folder and its fingerprint.
fn identity(world: &World, machine: &Machine) -> (PathBuf, String) {
    let folder = machine.folder().join("identity");
    let named = options(&[("out", folder.display().to_string())]);
    let (own, name) = (world.clone(), "keygen");
    let made =
        world.start(machine, name, move || embed::keygen(&named, &told(&own, &Cancel::default())));
    match made.wait() {
        Exit::Ended(Ok(fingerprint)) => (folder, fingerprint),
        other => panic!("no identity: {other:?}"),
    }
}

/// The status with which a program ended; none if a fault or the operator ended it. A panic is a
/// violation.
fn status<T>(exit: Exit<Result<T, Failure>>) -> Option<Result<T, (u8, String)>> {
    match exit {
        Exit::Ended(Ok(value)) => Some(Ok(value)),
        Exit::Ended(Err(failure)) => {
            let code = failure.status() as u8;
            let hint = failure.hint().unwrap_or_default();
            Some(Err((code, format!("{}; {hint}", failure.message()))))
        }
        Exit::Killed => None,
        Exit::Panicked(what) => panic!("a program panicked: {what}"),
    }
}

/// Files of runs that were not completed, beside an output.
fn leftovers(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder of a machine");
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.') && name.contains(".volery-")).collect()
}
