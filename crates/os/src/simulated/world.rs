//! A world: machines, programs on them, a clock, and the faults that befall them.
//!
//! Threads are real, but one has the baton and runs; the others wait for it, each at a condition
//! variable of its own. Whatever waits for something names it by a key, and whoever changes that
//! thing wakes the key.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{fmt, fs, io};

use super::disk::Disk;
use super::net::{Backlog, Wire};

/// The operator's thread, which no fault strikes.
const OPERATOR: usize = 0;

/// A world without an end, such as of two programs that ask each other for ever, ends after this
/// time and these hand-overs.
const LONGEST: Duration = Duration::from_secs(60 * 86_400);
const MOST: u64 = 4_000_000;

/// The time of a call, so that whoever tries again until a time has passed gets there.
const CALL: Duration = Duration::from_micros(1);

/// What a connection to a machine without power takes to be given up by the system.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// What strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The program never runs again.
    Kill,
    /// All programs of its machine, and the disk loses what was not synced.
    PowerLoss,
    /// The connections of the program are reset.
    Cut,
    /// Nothing that the program sends or is sent arrives for so long; then all of it.
    Silence(Duration),
    /// The thread stands still for so long, as in a long computation.
    Stall(Duration),
    /// The next call of the program that changes a file fails.
    DiskError,
    /// So do all, until the operator makes space.
    DiskFull,
    /// The time of day of the machine jumps by so many seconds.
    Clock(i64),
}

/// A fault: what strikes the programs of this name, at their call of this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the program.
    pub program: &'static str,
    /// The number of the call, over all starts of programs of this name.
    pub call: u64,
    /// What happens.
    pub kind: FaultKind,
}

/// How a program ended.
#[derive(Debug)]
pub enum Exit<T> {
    /// With a result.
    Ended(T),
    /// By a fault, or by the operator.
    Killed,
    /// With a panic, which no program may do.
    Panicked(String),
}

/// A line of the timeline.
#[derive(Clone, Debug)]
pub struct Event {
    at: Duration,
    program: String,
    what: String,
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>14.6} s  {:<14} {}", self.at.as_secs_f64(), self.program, self.what)
    }
}

/// What a run of a world left.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What the operator returned, or the panic that ended the run.
    pub result: Result<T, String>,
    /// The last events.
    pub timeline: Vec<Event>,
    /// The number of calls of the programs of each name.
    pub calls: BTreeMap<&'static str, u64>,
    /// Of all hand-overs and their times: equal if two runs were the same.
    pub hash: u64,
    /// The simulated time that passed.
    pub lasted: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Ready,
    Waits { on: usize, until: Option<Duration> },
    Over,
}

struct Thread {
    name: String,
    program: usize,
    state: State,
    /// Its deadline woke it.
    is_late: bool,
    go: Arc<Condvar>,
}

struct ProgramState {
    name: &'static str,
    machine: usize,
    is_alive: bool,
    disk_error: bool,
    wires: Vec<(Weak<Mutex<Wire>>, usize)>,
}

pub(super) struct MachineState {
    pub(super) folder: PathBuf,
    pub(super) disk: Disk,
    clock: i64,
    is_full: bool,
    pub(super) next_port: u16,
}

pub(super) struct Inner {
    /// Of all worlds of this process.
    pub(super) number: u64,
    pub(super) now: Duration,
    random: u64,
    threads: Vec<Thread>,
    running: usize,
    steps: u64,
    programs: Vec<ProgramState>,
    pub(super) machines: Vec<MachineState>,
    faults: Vec<Fault>,
    struck: Vec<FaultKind>,
    calls: BTreeMap<&'static str, u64>,
    events: Vec<Event>,
    hash: u64,
    /// Why the world ended before its operator did.
    failed: Option<String>,
    pub(super) listeners: BTreeMap<SocketAddr, (usize, Arc<Mutex<Backlog>>)>,
    pub(super) locks: Vec<LockState>,
    pub(super) drawn_locks: u64,
    scopes: Vec<Vec<usize>>,
}

/// A lock of a file, which is known by its device and number.
pub(super) struct LockState {
    pub(super) file: (u64, u64),
    pub(super) program: usize,
    pub(super) number: u64,
    pub(super) is_shared: bool,
}

/// A world, as its operator sees it.
#[derive(Clone)]
pub struct World(pub(super) Arc<Mutex<Inner>>);

/// A machine of a world.
#[derive(Clone, Debug)]
pub struct Machine {
    number: usize,
    folder: PathBuf,
}

/// A program that was started.
pub struct Program<T> {
    me: Me,
    number: usize,
    result: Arc<Mutex<Option<std::thread::Result<T>>>>,
}

/// A thread of a world.
#[derive(Clone)]
pub(super) struct Me {
    pub(super) world: World,
    id: usize,
    pub(super) program: usize,
}

thread_local!(static ME: RefCell<Option<Me>> = const { RefCell::new(None) });

pub(super) fn me() -> Option<Me> {
    ME.with_borrow(Clone::clone)
}

pub(super) fn enter(me: Option<Me>) -> Option<Me> {
    ME.replace(me)
}

/// Another thread of a world may run here, or a fault strike: before a change of the outside that
/// no function of this crate makes.
pub fn call(what: &'static str) {
    if let Some(me) = me() {
        me.call(what);
    }
}

/// Runs a world below the empty folder `root`; `operator` starts programs and looks at what they
/// leave. Programs that it leaves behind are killed.
pub fn run<T: Send>(
    root: &Path,
    seed: u64,
    faults: &[Fault],
    operator: impl FnOnce(&World) -> T + Send,
) -> Outcome<T> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let world = World(Arc::new(Mutex::new(Inner {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        now: Duration::ZERO,
        random: seed,
        threads: Vec::new(),
        running: OPERATOR,
        steps: 0,
        programs: Vec::new(),
        machines: Vec::new(),
        faults: faults.to_vec(),
        struck: Vec::new(),
        calls: BTreeMap::new(),
        events: Vec::new(),
        hash: 0xcbf2_9ce4_8422_2325,
        failed: None,
        listeners: BTreeMap::new(),
        locks: Vec::new(),
        drawn_locks: 0,
        scopes: Vec::new(),
    })));
    let own = world.machine_at(root);
    let operated = std::thread::scope(|scope| {
        let me = world.add_program("operator", own.number);
        let run = || {
            enter(Some(me));
            catch_unwind(AssertUnwindSafe(|| operator(&world)))
        };
        scope.spawn(run).join().unwrap_or_else(Err)
    });
    let mut inner = world.lock();
    for program in 0..inner.programs.len() {
        inner.kill(program, true);
    }
    let result = match inner.failed.take() {
        Some(failed) => Err(failed),
        None => operated.map_err(|panic| words(&*panic)),
    };
    Outcome {
        result,
        timeline: std::mem::take(&mut inner.events),
        calls: inner.calls.clone(),
        hash: inner.hash,
        lasted: inner.now,
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

impl Inner {
    fn draw(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.random;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3);
    }

    fn note(&mut self, program: usize, what: String) {
        const KEPT: usize = 4000;
        if self.events.len() >= 2 * KEPT {
            self.events.drain(..KEPT);
        }
        let program = self.programs[program].name.to_owned();
        self.events.push(Event { at: self.now, program, what });
    }

    fn random_ready(&mut self, ready: &[usize]) -> usize {
        ready[self.below(ready.len() as u64) as usize]
    }

    /// Chooses who runs next, and lets it.
    fn hand_over(&mut self) {
        self.steps += 1;
        let ready: Vec<usize> =
            (0..self.threads.len()).filter(|&id| self.threads[id].state == State::Ready).collect();
        let deadline = |(id, thread): (usize, &Thread)| match thread.state {
            State::Waits { until: Some(at), .. } => Some((at, id)),
            _ => None,
        };
        let next = if !ready.is_empty() {
            self.random_ready(&ready)
        } else if let Some((at, id)) = self.threads.iter().enumerate().filter_map(deadline).min() {
            self.now = self.now.max(at);
            self.threads[id].is_late = true;
            id
        } else {
            self.failed.get_or_insert("all threads wait for ever".to_owned());
            OPERATOR
        };
        if self.now > LONGEST || self.steps > MOST {
            self.failed.get_or_insert("the run does not end".to_owned());
        }
        let next = if self.failed.is_some() { OPERATOR } else { next };
        self.threads[next].state = State::Ready;
        self.running = next;
        self.mix(self.now.as_nanos() as u64);
        self.mix(next as u64);
        self.threads[next].go.notify_all();
    }

    pub(super) fn wake(&mut self, on: usize) {
        for thread in &mut self.threads {
            if matches!(thread.state, State::Waits { on: key, .. } if key == on) {
                thread.state = State::Ready;
            }
        }
    }

    /// Its threads never run again; its connections are closed, or fall silent with the machine.
    fn kill(&mut self, program: usize, has_power: bool) {
        let it = &mut self.programs[program];
        if !std::mem::take(&mut it.is_alive) {
            return;
        }
        let wires = std::mem::take(&mut it.wires);
        for thread in self.threads.iter_mut().filter(|thread| thread.program == program) {
            thread.state = State::Over;
        }
        self.locks.retain(|lock| lock.program != program);
        self.listeners.retain(|_, (holder, _)| *holder != program);
        for (wire, end) in wires {
            let Some(wire) = wire.upgrade() else { continue };
            let mut guard = wire.lock().unwrap_or_else(PoisonError::into_inner);
            match has_power {
                true => guard.close(end, self.now),
                false => guard.fall_silent(end, self.now + KEEPALIVE),
            }
            drop(guard);
            self.wake(Arc::as_ptr(&wire) as usize);
        }
        self.wake(program_key(program));
    }

    fn lose_power(&mut self, machine: usize) {
        for program in 0..self.programs.len() {
            if self.programs[program].machine == machine && program != OPERATOR {
                self.kill(program, false);
            }
        }
        let seed = self.draw();
        let machine = &mut self.machines[machine];
        machine.disk.lose_power(&machine.folder, seed);
    }

    fn strike(&mut self, id: usize, kind: FaultKind) {
        let program = self.threads[id].program;
        self.note(program, format!("FAULT {kind:?}"));
        self.struck.push(kind);
        let machine = self.programs[program].machine;
        match kind {
            FaultKind::Kill => self.kill(program, true),
            FaultKind::PowerLoss => self.lose_power(machine),
            FaultKind::Cut | FaultKind::Silence(_) => {
                for (wire, _) in self.programs[program].wires.clone() {
                    let Some(wire) = wire.upgrade() else { continue };
                    let mut guard = wire.lock().unwrap_or_else(PoisonError::into_inner);
                    match kind {
                        FaultKind::Silence(time) => guard.hold(self.now + time),
                        _ => guard.reset(),
                    }
                    drop(guard);
                    self.wake(Arc::as_ptr(&wire) as usize);
                }
            }
            FaultKind::Stall(time) => {
                let until = self.now.checked_add(time);
                self.threads[id].state = State::Waits { on: stall_key(id), until };
            }
            FaultKind::DiskError => self.programs[program].disk_error = true,
            FaultKind::DiskFull => self.machines[machine].is_full = true,
            FaultKind::Clock(seconds) => self.machines[machine].clock += seconds,
        }
    }
}

/// The key of the end of a program, of that of a thread, and of what nobody wakes.
fn program_key(program: usize) -> usize {
    usize::MAX - 3 * program
}

fn thread_key(id: usize) -> usize {
    usize::MAX - 3 * id - 1
}

fn stall_key(id: usize) -> usize {
    usize::MAX - 3 * id - 2
}

impl World {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn machine_at(&self, folder: &Path) -> Machine {
        let mut inner = self.lock();
        let number = inner.machines.len();
        inner.machines.push(MachineState {
            folder: folder.to_owned(),
            disk: Disk::new(folder),
            clock: 0,
            is_full: false,
            next_port: 40_000,
        });
        Machine { number, folder: folder.to_owned() }
    }

    /// A new machine, with an empty folder.
    ///
    /// # Panics
    /// If the folder cannot be made.
    pub fn machine(&self, name: &str) -> Machine {
        let root = self.lock().machines[0].folder.join(name);
        fs::create_dir(&root).expect("the root is empty");
        self.machine_at(&root)
    }

    fn add_program(&self, name: &'static str, machine: usize) -> Me {
        let mut inner = self.lock();
        let program = inner.programs.len();
        inner.programs.push(ProgramState {
            name,
            machine,
            is_alive: true,
            disk_error: false,
            wires: Vec::new(),
        });
        drop(inner);
        self.add_thread("main".to_owned(), program)
    }

    fn add_thread(&self, name: String, program: usize) -> Me {
        let mut inner = self.lock();
        let id = inner.threads.len();
        let go = Arc::default();
        inner.threads.push(Thread { name, program, state: State::Ready, is_late: false, go });
        Me { world: self.clone(), id, program }
    }

    /// Starts a program on a machine.
    ///
    /// # Panics
    /// If the system has no thread.
    pub fn start<T: Send + 'static>(
        &self,
        machine: &Machine,
        name: &'static str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Program<T> {
        let me = self.add_program(name, machine.number);
        self.note(me.program, "starts".to_owned());
        let result = Arc::new(Mutex::new(None));
        let (own, place, number) = (me.clone(), Arc::clone(&result), me.program);
        std::thread::spawn(move || {
            enter(Some(own.clone()));
            own.begin();
            let ended = catch_unwind(AssertUnwindSafe(body));
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            let mut inner = own.world.lock();
            inner.note(own.program, "ends".to_owned());
            // Threads that it left behind end with the process.
            inner.kill(own.program, true);
            inner.hand_over();
        });
        let operator = self::me().expect("the operator is in its world");
        Program { me: operator, number, result }
    }

    /// The number of the program of this thread.
    ///
    /// # Panics
    /// On a thread of no world.
    pub fn own_program() -> usize {
        me().expect("a thread of a world").program
    }

    /// Puts all files of a machine on its disk.
    pub fn settle(&self, machine: &Machine) {
        let machine = &mut self.lock().machines[machine.number];
        machine.disk.settle(&machine.folder);
    }

    /// Takes a line into the timeline.
    pub fn note(&self, program: usize, what: String) {
        self.lock().note(program, what);
    }

    /// Takes the power of a machine.
    pub fn lose_power(&self, machine: &Machine) {
        self.lock().lose_power(machine.number);
    }

    /// Ends faults of a machine that last: a full disk, a wrong clock.
    pub fn mend(&self, machine: &Machine) {
        let mut inner = self.lock();
        let machine = &mut inner.machines[machine.number];
        (machine.is_full, machine.clock) = (false, 0);
    }

    /// No fault strikes from now on.
    pub fn end_faults(&self) {
        self.lock().faults.clear();
    }

    /// The faults that have struck.
    pub fn struck(&self) -> Vec<FaultKind> {
        self.lock().struck.clone()
    }
}

impl Machine {
    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        address_of(self.number)
    }
}

fn address_of(machine: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, machine as u8))
}

impl<T> Program<T> {
    /// Whether it has ended or was killed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.me.world.lock().programs[self.number].is_alive
    }

    /// Kills it.
    pub fn kill(&self) {
        let mut inner = self.me.world.lock();
        inner.note(self.number, "is killed".to_owned());
        inner.kill(self.number, true);
    }

    /// Waits for its end.
    #[must_use]
    pub fn wait(self) -> Exit<T> {
        while !self.is_over() {
            self.me.wait(program_key(self.number), None);
        }
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match result {
            None => Exit::Killed,
            Some(Ok(value)) => Exit::Ended(value),
            Some(Err(panic)) => Exit::Panicked(words(&*panic)),
        }
    }
}

impl Me {
    /// A thread of the same program.
    pub(super) fn child(&self, name: String) -> Self {
        self.world.add_thread(name, self.program)
    }

    pub(super) fn is_over(&self, id: usize) -> bool {
        self.world.lock().threads[id].state == State::Over
    }

    pub(super) fn id(&self) -> usize {
        self.id
    }

    pub(super) fn machine(&self) -> usize {
        self.world.lock().programs[self.program].machine
    }

    pub(super) fn address(&self) -> IpAddr {
        address_of(self.machine())
    }

    pub(super) fn now(&self) -> Duration {
        self.world.lock().now
    }

    /// By how much the time of day of its machine is wrong, in seconds.
    pub(super) fn clock(&self) -> i64 {
        let inner = self.world.lock();
        inner.machines[inner.programs[self.program].machine].clock
    }

    /// Keeps one end of a connection, which closes with the program.
    pub(super) fn keep(&self, wire: &Arc<Mutex<Wire>>, end: usize) {
        let wires = &mut self.world.lock().programs[self.program].wires;
        wires.retain(|(wire, _)| wire.strong_count() > 0);
        wires.push((Arc::downgrade(wire), end));
    }

    /// Waits for the baton for the first time.
    pub(super) fn begin(&self) {
        self.until_running(self.world.lock());
    }

    fn until_running(&self, mut inner: MutexGuard<'_, Inner>) {
        let go = Arc::clone(&inner.threads[self.id].go);
        // A thread of a killed program stays here for ever.
        while inner.running != self.id || inner.threads[self.id].state == State::Over {
            inner = go.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if self.id == OPERATOR
            && let Some(failed) = &inner.failed
        {
            let waiting = inner.threads.iter().filter(|one| one.state != State::Over);
            let name = |one: &Thread| format!("{}/{}", inner.programs[one.program].name, one.name);
            let waiting = waiting.map(name).collect::<Vec<_>>().join(", ");
            let what = format!("{failed}: {waiting}");
            drop(inner);
            self.world.lock().failed = Some(what.clone());
            std::panic::resume_unwind(Box::new(what));
        }
    }

    /// A call of this crate: a fault may strike, and another thread may go on.
    pub(super) fn call(&self, what: &'static str) {
        if self.id == OPERATOR {
            return;
        }
        let mut inner = self.world.lock();
        inner.now += CALL;
        let name = inner.programs[self.program].name;
        let calls = inner.calls.entry(name).or_default();
        *calls += 1;
        let number = *calls;
        let thread = inner.threads[self.id].name.clone();
        inner.note(self.program, format!("{number:>6} {thread}: {what}"));
        let strikes = |fault: &Fault| fault.program == name && fault.call <= number;
        let due = inner.faults.iter().position(strikes);
        if let Some(place) = due {
            let fault = inner.faults.remove(place);
            inner.strike(self.id, fault.kind);
        }
        if due.is_some() || inner.below(4) == 0 {
            inner.hand_over();
            self.until_running(inner);
        }
    }

    /// A call that changes a file.
    pub(super) fn file_call(&self, what: &'static str) -> io::Result<()> {
        self.call(what);
        let mut inner = self.world.lock();
        let machine = inner.programs[self.program].machine;
        if inner.machines[machine].is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match std::mem::take(&mut inner.programs[self.program].disk_error) {
            true => Err(io::Error::from_raw_os_error(libc::EIO)),
            false => Ok(()),
        }
    }

    /// Waits until `on` is woken, at most until a time; whether that came first.
    pub(super) fn wait(&self, on: usize, until: Option<Duration>) -> bool {
        let mut inner = self.world.lock();
        inner.threads[self.id].is_late = false;
        inner.threads[self.id].state = State::Waits { on, until };
        inner.hand_over();
        self.until_running(inner);
        self.world.lock().threads[self.id].is_late
    }

    pub(super) fn wake(&self, on: usize) {
        self.world.lock().wake(on);
    }

    /// Until a time.
    pub(super) fn sleep(&self, time: Duration) {
        let until = self.now().saturating_add(time);
        self.wait(stall_key(self.id), Some(until));
    }

    /// The end of a thread.
    pub(super) fn end(&self) {
        let mut inner = self.world.lock();
        inner.threads[self.id].state = State::Over;
        inner.wake(thread_key(self.id));
        inner.hand_over();
    }

    /// Waits for the end of a thread.
    pub(super) fn join(&self, id: usize) {
        while !self.is_over(id) {
            self.wait(thread_key(id), None);
        }
    }

    pub(super) fn open_scope(&self) -> usize {
        let scopes = &mut self.world.lock().scopes;
        scopes.push(Vec::new());
        scopes.len() - 1
    }

    pub(super) fn take_into(&self, scope: usize, id: usize) {
        self.world.lock().scopes[scope].push(id);
    }

    /// Waits for all threads of a scope.
    pub(super) fn close_scope(&self, scope: usize) {
        let threads = std::mem::take(&mut self.world.lock().scopes[scope]);
        threads.into_iter().for_each(|id| self.join(id));
    }
}
