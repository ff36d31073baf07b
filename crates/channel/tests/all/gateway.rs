//! The gateway: who meets there, who does not, and what passes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, PKCS_ED25519};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{SignatureScheme, sign::SigningKey};
use socket2::SockRef;
use volery_channel::gateway::{Event, Gateway, Limits, Reason, Ticket, meet, ticket_for_tests};
use volery_channel::tls::{Fingerprint, Identity, Patience, Peer};
use volery_channel::{Cancel, Channel, Error, Result, Role};

use crate::pattern;
use crate::run_certificates::today;
use crate::tls::{DAY, PATIENCE, identity};

const RUN: [u8; 32] = [7; 32];

fn ticket(side: Role, worker: u32, attempt: u64) -> Ticket {
    Ticket { run: RUN, side, worker: Some(worker), attempt }
}

struct RunningGateway {
    address: SocketAddr,
    cancel: Cancel,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RunningGateway {
    fn start(limits: Limits, allowed: &[Fingerprint]) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), limits, allowed)
    }

    fn start_at(address: SocketAddr, limits: Limits, allowed: &[Fingerprint]) -> Self {
        let gateway = Gateway::bind(address, limits, allowed.to_vec()).unwrap();
        let address: SocketAddr = gateway.addresses().parse().unwrap();
        let (cancel, events) = (Cancel::default(), Arc::<Mutex<Vec<Event>>>::default());
        let thread = thread::spawn({
            let (cancel, events) = (cancel.clone(), Arc::clone(&events));
            move || gateway.serve(&cancel, &|event| events.lock().unwrap().push(event))
        });
        Self { address, cancel, events, thread: Some(thread) }
    }

    /// Ends it; returns all events.
    fn end(mut self) -> Vec<Event> {
        self.cancel.cancel();
        self.thread.take().unwrap().join().unwrap().unwrap();
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Waits until as many events fulfil `what`.
    fn wait_for(&self, count: usize, what: impl Fn(&Event) -> bool) {
        let start = Instant::now();
        loop {
            let events = self.events.lock().unwrap();
            if events.iter().filter(|event| what(event)).count() >= count {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{events:#?}");
            drop(events);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_for_waiting(&self, count: usize) {
        self.wait_for(count, |event| matches!(event, Event::Waiting(_)));
    }

    fn wait_for_reason(&self, wanted: Reason) {
        self.wait_for(1, |event| match event {
            Event::Refused { reason, .. } => *reason == wanted,
            Event::Left { reason, .. } => *reason == Some(wanted),
            _ => false,
        });
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The organisations of a sender and of a receiver.
struct Both([Identity; 2]);

impl Both {
    fn new() -> Self {
        Self(["sender", "receiver"].map(identity))
    }

    fn prints(&self) -> [Fingerprint; 2] {
        [0, 1].map(|side| self.0[side].fingerprint())
    }

    fn start(&self, limits: Limits) -> RunningGateway {
        RunningGateway::start(limits, &self.prints())
    }

    fn own(&self, side: Role) -> &Identity {
        &self.0[side as usize]
    }

    fn leaf(&self, ticket: &Ticket) -> Identity {
        self.own(ticket.side).issue(&ticket.name(), today()).unwrap()
    }

    fn peer(&self, ticket: &Ticket) -> Peer {
        Peer::of_run(self.own(ticket.side.other()).fingerprint(), ticket.name())
    }

    fn meet(&self, at: SocketAddr, ticket: Ticket) -> Result<Channel> {
        self.meet_within(at, ticket, PATIENCE)
    }

    fn meet_within(
        &self,
        at: SocketAddr,
        ticket: Ticket,
        patience: impl Into<Patience>,
    ) -> Result<Channel> {
        meet(at, &ticket, &self.leaf(&ticket), &self.peer(&ticket), patience)
    }

    fn pair(&self, at: SocketAddr, worker: u32, attempt: u64) -> [Channel; 2] {
        thread::scope(|scope| {
            let sender = scope.spawn(move || self.meet(at, ticket(Role::Sender, worker, attempt)));
            let receiver = self.meet(at, ticket(Role::Receiver, worker, attempt)).unwrap();
            [sender.join().unwrap().unwrap(), receiver]
        })
    }

    /// A client that has sent its ticket and does nothing else.
    fn raw(&self, at: SocketAddr, ticket: &Ticket) -> TcpStream {
        let leaf = self.leaf(ticket);
        let (mut socket, challenge) = dial(at);
        let chain = [&leaf, self.own(ticket.side)];
        let peer = self.peer(ticket).fingerprint;
        let bytes = signed(ticket, chain, &leaf, peer, &challenge);
        socket.write_all(&bytes).unwrap();
        socket
    }
}

/// A connection with the gateway's challenge.
fn dial(at: SocketAddr) -> (TcpStream, [u8; 32]) {
    let mut socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut hello = [0; 40];
    socket.read_exact(&mut hello).unwrap();
    assert_eq!(&hello[..8], b"\x89volgtw\x01");
    (socket, hello[8..].try_into().unwrap())
}

/// A ticket, written from its description, with any certificates and any key.
fn signed(
    ticket: &Ticket,
    chain: [&Identity; 2],
    key: &Identity,
    peer: Fingerprint,
    challenge: &[u8; 32],
) -> Vec<u8> {
    let mut bytes = ticket.run.to_vec();
    bytes.push(u8::from(ticket.side == Role::Receiver));
    bytes.extend(ticket.worker.unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(ticket.attempt.to_le_bytes());
    bytes.extend(raw_print(peer));
    let chain = chain.map(|one| CertificateDer::from_pem_slice(one.to_pem().as_bytes()).unwrap());
    for certificate in &chain {
        bytes.extend(u16::try_from(certificate.len()).unwrap().to_le_bytes());
    }
    chain.iter().for_each(|one| bytes.extend_from_slice(one));
    let key = PrivateKeyDer::from_pem_slice(key.to_pem().as_bytes()).unwrap();
    let key: Arc<dyn SigningKey> = any_supported_type(&key).unwrap();
    let message = [b"volery gateway ticket, version 1\0", &challenge[..], &bytes].concat();
    let signer = key.choose_scheme(&[SignatureScheme::ED25519]).unwrap();
    bytes.extend(signer.sign(&message).unwrap());
    bytes
}

/// A run certificate of any validity, with its key.
fn longer(organisation: &Identity, name: &str, validity: Range<SystemTime>) -> Identity {
    // The name of `organisation` is that of its issuer.
    let mut issuer = CertificateParams::default();
    issuer.distinguished_name = DistinguishedName::new();
    issuer.distinguished_name.push(DnType::CommonName, "old");
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.not_before = validity.start.into();
    parameters.not_after = validity.end.into();
    let private = PrivatePkcs8KeyDer::from_pem_slice(organisation.to_pem().as_bytes()).unwrap();
    let signer = KeyPair::from_pkcs8_der_and_sign_algo(&private, &PKCS_ED25519).unwrap();
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let issuer = Issuer::from_params(&issuer, &signer);
    let leaf = parameters.signed_by(&key, &issuer).unwrap();
    let pem = leaf.pem() + organisation.to_pem().split_once("-----BEGIN PRIVATE").unwrap().0;
    Identity::from_pem(&(pem + &key.serialize_pem())).unwrap()
}

/// The 160 bits of a fingerprint, from its text.
fn raw_print(print: Fingerprint) -> [u8; 20] {
    let digits = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text = print.to_string().replace('-', "");
    let mut bits = text
        .bytes()
        .map(|c| digits.iter().position(|digit| *digit == c).unwrap())
        .flat_map(|digit| (0..5).rev().map(move |place| (digit >> place & 1) as u8));
    let mut byte = || (0..8).fold(0, |byte, _| byte << 1 | bits.next().unwrap());
    std::array::from_fn(|_| byte())
}

/// The next byte from the gateway that is not the sign that the peer is not there yet; 0 at the
/// end, and where only such signs come.
fn answer(socket: &mut TcpStream) -> u8 {
    let (mut byte, start) = ([0], Instant::now());
    while matches!(socket.read(&mut byte), Ok(1)) {
        if byte != [0] || start.elapsed() > PATIENCE / 2 {
            return byte[0];
        }
    }
    0
}

const GO: u8 = 1;

/// The byte of a refusal, from the documented order of the reasons.
fn code(reason: Reason) -> u8 {
    let all = [
        Reason::Slow,
        Reason::Malformed,
        Reason::Organisation,
        Reason::Peer,
        Reason::Certificate,
        Reason::Signature,
        Reason::Newer,
        Reason::Used,
        Reason::Full,
        Reason::Alone,
    ];
    2 + u8::try_from(all.iter().position(|one| *one == reason).unwrap()).unwrap()
}

/// Sends and receives `length` bytes in both directions at once.
fn exchange([left, right]: &mut [Channel; 2], length: usize) {
    let (ours, theirs) = (pattern(length, 1), pattern(length, 2));
    let one = |channel: &mut Channel, ours: &[u8], theirs: &[u8]| {
        channel.send(ours).unwrap();
        let mut heard = vec![0; theirs.len()];
        channel.recv(&mut heard).unwrap();
        assert!(heard == theirs);
    };
    thread::scope(|scope| {
        scope.spawn(|| one(left, &ours, &theirs));
        one(right, &theirs, &ours);
    });
}

fn refusal(result: Result<Channel>) -> String {
    match result.map(drop) {
        Err(Error::Refused(why) | Error::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_newer_attempt_takes_the_place_of_an_older_one_that_waits() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let at = running.address;
    thread::scope(|scope| {
        let both = &both;
        let older = scope.spawn(move || both.meet(at, ticket(Role::Sender, 1, 4)));
        running.wait_for_waiting(1);
        // The same one once more, and one before it.
        let why = refusal(both.meet(at, ticket(Role::Sender, 1, 4)));
        assert!(why.contains("used already"), "{why}");
        let why = refusal(both.meet(at, ticket(Role::Sender, 1, 3)));
        assert!(why.contains("newer attempt"), "{why}");
        let newer = scope.spawn(move || both.meet(at, ticket(Role::Sender, 1, 5)));
        let why = refusal(older.join().unwrap());
        assert!(why.contains("newer attempt"), "{why}");
        // Other workers, the other side and other runs have attempts of their own.
        let mut other = both.raw(at, &ticket(Role::Sender, 2, 1));
        let run = Ticket { run: [8; 32], ..ticket(Role::Sender, 1, 1) };
        let mut run = both.raw(at, &run);
        running.wait_for_waiting(4);
        let receiver = both.meet(at, ticket(Role::Receiver, 1, 1)).unwrap();
        exchange(&mut [newer.join().unwrap().unwrap(), receiver], 100);
        for socket in [&mut other, &mut run] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            assert_eq!(answer(socket), 0, "it waits");
        }
    });
}

#[test]
fn a_newer_attempt_closes_an_older_one_that_is_connected() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let at = running.address;
    let mut older = both.pair(at, 1, 1);
    exchange(&mut older, 100);
    let description = older[0].description();
    assert!(description.starts_with("TLS 1.3"), "{description}");
    // An attempt that has met its peer is used up, connected or not.
    let why = refusal(both.meet(at, ticket(Role::Receiver, 1, 1)));
    assert!(why.contains("used already"), "{why}");
    thread::scope(|scope| {
        let both = &both;
        let sender = scope.spawn(move || both.meet(at, ticket(Role::Sender, 1, 2)));
        for channel in &mut older {
            let ended = channel.recv(&mut [0]);
            assert!(matches!(ended, Err(Error::Disconnected)), "{ended:?}");
        }
        running.wait_for(1, |event| matches!(event, Event::Ended { .. }));
        let why = refusal(both.meet(at, ticket(Role::Receiver, 1, 1)));
        assert!(why.contains("used already"), "{why}");
        let receiver = both.meet(at, ticket(Role::Receiver, 1, 2)).unwrap();
        let mut newer = [sender.join().unwrap().unwrap(), receiver];
        exchange(&mut newer, 100);
    });
    running.wait_for(2, |event| matches!(event, Event::Ended { .. }));
}

#[test]
fn an_overheard_ticket_opens_no_other_connection() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let one = ticket(Role::Sender, 1, 1);
    let leaf = both.leaf(&one);
    let (mut socket, challenge) = dial(running.address);
    let chain = [&leaf, &both.0[0]];
    let bytes = signed(&one, chain, &leaf, both.prints()[1], &challenge);
    socket.write_all(&bytes).unwrap();
    running.wait_for_waiting(1);
    drop(socket);
    running.wait_for(1, |event| matches!(event, Event::Left { .. }));
    let (mut again, other) = dial(running.address);
    assert_ne!(challenge, other);
    again.write_all(&bytes).unwrap();
    assert_eq!(answer(&mut again), code(Reason::Signature));
}

#[test]
fn only_valid_tickets_are_taken() {
    let (both, third) = (Both::new(), identity("third"));
    let now = SystemTime::now();
    let old = Identity::generate("old", now - 3 * DAY..now - DAY).unwrap();
    let [sender, receiver] = both.prints();
    let allowed = [sender, receiver, old.fingerprint()];
    let running = RunningGateway::start(Limits::default(), &allowed);
    let one = ticket(Role::Sender, 1, 1);
    let name = one.name();
    let own = &both.0[0];
    let good = own.issue(&name, today()).unwrap();
    let foreign = third.issue(&name, today()).unwrap();
    let of_old = old.issue(&name, now - 2 * DAY..now).unwrap();
    // Another program issues one that outlives its organisation.
    let outlives = longer(&old, &name, today());
    let early = own.issue(&name, now - DAY / 2..now - DAY / 4).unwrap();
    let worker = own.issue(&ticket(Role::Sender, 2, 1).name(), today()).unwrap();
    let run = [6; 32];
    let run = own.issue(&Ticket { run, ..one }.name(), today()).unwrap();
    let driver = Ticket { worker: None, ..one }.name();
    assert!(driver.starts_with("driver.0707"), "{driver}");
    let driver = own.issue(&driver, today()).unwrap();
    for (chain, key, peer, reason) in [
        ([&foreign, &third], &foreign, receiver, Reason::Organisation),
        // Not allowed before anything else is looked at.
        ([&good, &good], &good, receiver, Reason::Organisation),
        ([&good, own], &good, third.fingerprint(), Reason::Peer),
        ([&good, own], &good, sender, Reason::Peer),
        ([&foreign, own], &foreign, receiver, Reason::Certificate),
        ([&of_old, &old], &of_old, receiver, Reason::Certificate),
        ([&outlives, &old], &outlives, receiver, Reason::Certificate),
        ([&early, own], &early, receiver, Reason::Certificate),
        ([&worker, own], &worker, receiver, Reason::Certificate),
        ([&run, own], &run, receiver, Reason::Certificate),
        ([&driver, own], &driver, receiver, Reason::Certificate),
        ([own, own], own, receiver, Reason::Certificate),
        ([&good, own], own, receiver, Reason::Signature),
        ([&good, own], &foreign, receiver, Reason::Signature),
    ] {
        let (mut socket, challenge) = dial(running.address);
        let bytes = signed(&one, chain, key, peer, &challenge);
        socket.write_all(&bytes).unwrap();
        assert_eq!(answer(&mut socket), code(reason), "{reason}");
        drop(socket);
        running.wait_for_reason(reason);
    }
    assert!(!running.end().iter().any(|event| matches!(event, Event::Waiting(_))));
}

/// The text of the client's error after a refusal.
#[test]
fn a_refused_client_is_told_why() {
    let (both, other) = (Both::new(), Both::new());
    let running = RunningGateway::start(Limits::default(), &both.prints()[..1]);
    let at = running.address;
    let why = refusal(both.meet(at, ticket(Role::Sender, 1, 1)));
    assert!(why.contains("organisation of the peer is not allowed"), "{why}");
    let why = refusal(both.meet(at, ticket(Role::Receiver, 1, 1)));
    assert!(why.contains("the organisation is not allowed"), "{why}");
    let running = both.start(Limits::default());
    let one = ticket(Role::Sender, 1, 1);
    let leaf = both.leaf(&ticket(Role::Sender, 2, 1));
    let why = refusal(meet(running.address, &one, &leaf, &both.peer(&one), PATIENCE));
    assert!(why.contains("not for this run and worker"), "{why}");
    // What needs no gateway to be known is said without one.
    let nowhere = ("127.0.0.1", 1);
    let plain = meet(nowhere, &one, &both.0[0], &both.peer(&one), PATIENCE);
    assert!(matches!(plain, Err(Error::Identity(why)) if why.contains("run certificate")));
    let own = Peer::from(both.prints()[0]);
    let own = meet(nowhere, &one, &both.leaf(&one), &own, PATIENCE);
    assert!(matches!(own, Err(Error::Identity(why)) if why.contains("is its own")));
    drop(other);
}

/// Two that do not name each other do not meet, whatever run and worker they say.
#[test]
fn a_third_organisation_takes_nobodys_place() {
    let (both, third) = (Both::new(), identity("third"));
    let allowed = [both.prints().to_vec(), vec![third.fingerprint()]].concat();
    let running = RunningGateway::start(Limits::default(), &allowed);
    let at = running.address;
    let one = ticket(Role::Receiver, 1, 1);
    let leaf = third.issue(&one.name(), today()).unwrap();
    let (mut socket, challenge) = dial(at);
    let sender = both.prints()[0];
    let bytes = signed(&one, [&leaf, &third], &leaf, sender, &challenge);
    socket.write_all(&bytes).unwrap();
    running.wait_for_waiting(1);
    exchange(&mut both.pair(at, 1, 1), 100);
    // Nor does one meet a worker that waits for another organisation.
    let five = ticket(Role::Receiver, 5, 1);
    let elsewhere = Both([third.clone(), both.0[1].clone()]);
    let mut elsewhere = elsewhere.raw(at, &five);
    let mut waits = both.raw(at, &ticket(Role::Sender, 5, 1));
    // Nor do two of the same side.
    let mut first = both.raw(at, &ticket(Role::Sender, 2, 1));
    let other = Both([third, both.0[1].clone()]);
    let mut second = other.raw(at, &ticket(Role::Sender, 2, 1));
    running.wait_for_waiting(5);
    for socket in [&mut socket, &mut elsewhere, &mut waits, &mut first, &mut second] {
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert_eq!(answer(socket), 0, "it waits");
    }
}

/// An organisation that is allowed, and not the peer, gets no further than the meeting.
#[test]
fn each_side_checks_the_other_itself() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let at = running.address;
    thread::scope(|scope| {
        let (one, other) = (ticket(Role::Sender, 1, 1), ticket(Role::Receiver, 1, 1));
        let (both, short) = (&both, Duration::from_secs(5));
        let sender = scope.spawn(move || {
            let name = ticket(Role::Sender, 2, 1).name();
            let peer = Peer { name: Some(name), ..both.peer(&one) };
            meet(at, &one, &both.leaf(&one), &peer, short).map(drop)
        });
        let receiver = both.meet_within(at, other, short).map(drop);
        let sender = sender.join().unwrap();
        assert!(matches!(sender, Err(Error::Unauthenticated(_))), "{sender:?}");
        assert!(matches!(receiver, Err(Error::Refused(_))), "{receiver:?}");
    });
}

#[test]
fn clients_that_send_no_ticket_are_refused() {
    let both = Both::new();
    let limits = Limits { ticket: Duration::from_secs(1), ..Limits::default() };
    let running = both.start(limits);
    let at = running.address;
    // Silence, and a byte now and then, which makes no difference.
    let (mut silent, _) = dial(at);
    let start = Instant::now();
    assert_eq!(answer(&mut silent), code(Reason::Slow));
    let (mut slow, _) = dial(at);
    while slow.write_all(&[1]).is_ok() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(start.elapsed() < PATIENCE / 2);
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: gateway.example.org\r\nAccept: */*\r\n\r\n and more of it"[..],
        &[0xff; 1000],
        &[0; 1000],
        &[0x16, 3, 1, 2, 0],
    ] {
        let (mut socket, _) = dial(at);
        socket.write_all(garbage).unwrap();
        let _ = socket.shutdown(Shutdown::Write);
        let mut said = Vec::new();
        // Unread bytes make the system reset the connection.
        let _ = socket.read_to_end(&mut said);
        assert!(said.is_empty() || said == [code(Reason::Malformed)], "{said:?}");
    }
    running.wait_for_reason(Reason::Malformed);
    // A client that sends something while it waits is none of ours.
    let mut early = both.raw(at, &ticket(Role::Sender, 1, 1));
    running.wait_for_waiting(1);
    early.write_all(b"?").unwrap();
    running
        .wait_for(1, |event| matches!(event, Event::Left { reason: Some(Reason::Malformed), .. }));
    exchange(&mut both.pair(at, 1, 1), 10);
}

#[test]
fn silent_clients_keep_nobody_out() {
    let both = Both::new();
    let running = both.start(Limits { ticket: Duration::from_secs(600), ..Limits::default() });
    let silent: Vec<_> = (0..400).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let start = Instant::now();
    exchange(&mut both.pair(running.address, 1, 1), 10);
    assert!(start.elapsed() < Duration::from_secs(8));
    // The oldest were closed to make way.
    running.wait_for(140, |event| matches!(event, Event::Refused { .. }));
    drop(silent);
}

#[test]
fn a_full_gateway_refuses_and_the_client_tries_again() {
    let both = Both::new();
    let limits = Limits { connections: 3, waiting: 1, ..Limits::default() };
    let running = both.start(limits);
    let at = running.address;
    let waiting = both.raw(at, &ticket(Role::Sender, 1, 1));
    running.wait_for_waiting(1);
    let mut second = both.raw(at, &ticket(Role::Sender, 2, 1));
    assert_eq!(answer(&mut second), code(Reason::Full), "too many wait");
    let short = Duration::from_secs(2);
    let why = refusal(both.meet_within(at, ticket(Role::Sender, 2, 1), short));
    assert!(why.contains("too many connections"), "{why}");
    // A newer attempt takes the place of its older one.
    let mut newer = both.raw(at, &ticket(Role::Sender, 1, 2));
    running.wait_for_waiting(2);
    running.wait_for_reason(Reason::Newer);
    drop(waiting);
    // Its peer needs no place among those that wait.
    let mut receiver = both.raw(at, &ticket(Role::Receiver, 1, 1));
    assert_eq!([answer(&mut newer), answer(&mut receiver)], [GO; 2]);
    let third = both.raw(at, &ticket(Role::Receiver, 3, 1));
    running.wait_for_waiting(3);
    let mut fourth = both.raw(at, &ticket(Role::Sender, 3, 1));
    assert_eq!(answer(&mut fourth), code(Reason::Full), "too many are connected");
    thread::scope(|scope| {
        let both = &both;
        let patient = scope.spawn(move || both.meet(at, ticket(Role::Sender, 4, 1)));
        thread::sleep(Duration::from_millis(300));
        drop((newer, receiver, third));
        let receiver = both.meet(at, ticket(Role::Receiver, 4, 1)).unwrap();
        exchange(&mut [patient.join().unwrap().unwrap(), receiver], 10);
    });
}

#[test]
fn a_client_that_waits_hears_from_the_gateway() {
    let both = Both::new();
    let limits = Limits { wait: Duration::from_secs(6), ..Limits::default() };
    let running = both.start(limits);
    let mut socket = both.raw(running.address, &ticket(Role::Sender, 1, 1));
    let mut heard = Vec::new();
    let start = Instant::now();
    (&mut socket).take(3).read_to_end(&mut heard).unwrap();
    assert!(start.elapsed() > Duration::from_secs(5));
    // At once, after five seconds, and at the end of the longest wait.
    assert_eq!(heard, [0, 0, code(Reason::Alone)]);
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    running.wait_for_reason(Reason::Alone);
}

/// The end of one direction, and of both.
#[test]
fn ends_are_passed_on() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let raw = |worker| {
        let mut sockets = Role::ALL.map(|side| both.raw(running.address, &ticket(side, worker, 1)));
        assert_eq!(sockets.each_mut().map(answer), [GO; 2]);
        sockets
    };
    let [mut left, mut right] = raw(1);
    left.write_all(b"last").unwrap();
    left.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    right.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"last");
    // The other direction is open.
    let long = pattern(3 << 20, 5);
    thread::scope(|scope| {
        scope.spawn(|| {
            right.write_all(&long).unwrap();
            right.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        left.read_to_end(&mut heard).unwrap();
        assert!(heard == long);
    });
    // A reset ends both directions, also for a peer that only writes.
    for side in [0, 1] {
        let mut pair = raw(2 + side).map(Some);
        let gone = pair[side as usize].take().unwrap();
        SockRef::from(&gone).set_linger(Some(Duration::ZERO)).unwrap();
        drop(gone);
        let mut left = pair[1 - side as usize].take().unwrap();
        assert_eq!(left.read(&mut [0]).unwrap_or(0), 0);
        let start = Instant::now();
        while left.write_all(&[0; 1000]).is_ok() {
            assert!(start.elapsed() < PATIENCE, "it can still be written to");
        }
    }
    running.wait_for(3, |event| matches!(event, Event::Ended { .. }));
}

#[test]
fn a_pair_that_is_silent_is_closed() {
    let both = Both::new();
    let limits = Limits { idle: Duration::from_millis(400), ..Limits::default() };
    let running = both.start(limits);
    let mut sockets = Role::ALL.map(|side| both.raw(running.address, &ticket(side, 1, 1)));
    assert_eq!(sockets.each_mut().map(answer), [GO; 2]);
    let start = Instant::now();
    let [left, right] = &mut sockets;
    // Bytes in one direction keep both open.
    for _ in 0..20 {
        left.write_all(&[1]).unwrap();
        right.read_exact(&mut [0]).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    assert!(start.elapsed() > 2 * Duration::from_millis(400));
    assert_eq!(right.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(left.read(&mut [0]).unwrap_or(0), 0);
    running.wait_for(1, |event| matches!(event, Event::Ended { bytes: [20, 0], .. }));
}

#[test]
fn a_cancelled_gateway_ends_at_once() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let at = running.address;
    let mut pair = both.pair(at, 1, 1);
    let waiting = both.raw(at, &ticket(Role::Sender, 2, 1));
    running.wait_for_waiting(2);
    let silent: Vec<_> = (0..20).map(|_| dial(at)).collect();
    // One that is in the middle of a write to a client that does not read.
    let mut stuck = Role::ALL.map(|side| both.raw(at, &ticket(side, 3, 1)));
    assert_eq!(stuck.each_mut().map(answer), [GO; 2]);
    stuck[0].set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    while stuck[0].write_all(&[0; 1 << 16]).is_ok() {}
    let start = Instant::now();
    running.end();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(pair[0].recv(&mut [0]).is_err());
    drop((waiting, silent));
    // The address is free.
    let again = RunningGateway::start_at(at, Limits::default(), &both.prints());
    exchange(&mut both.pair(again.address, 1, 1), 10);
}

#[test]
fn clients_that_wait_outlast_a_restart() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let at = running.address;
    thread::scope(|scope| {
        let both = &both;
        let waiting: Vec<_> = (0..5)
            .map(|worker| scope.spawn(move || both.meet(at, ticket(Role::Sender, worker, 3))))
            .collect();
        running.wait_for_waiting(5);
        running.end();
        thread::sleep(Duration::from_millis(300));
        let _again = RunningGateway::start_at(at, Limits::default(), &both.prints());
        for (worker, waiting) in (0..).zip(waiting) {
            let receiver = both.meet(at, ticket(Role::Receiver, worker, 1)).unwrap();
            exchange(&mut [waiting.join().unwrap().unwrap(), receiver], 10);
        }
    });
}

/// A client that waited at a gateway that went away does not know whether its peer came.
#[test]
fn a_gateway_that_went_away_is_no_absent_peer() {
    let both = Both::new();
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = gateway.local_addr().unwrap();
    let lost = thread::scope(|scope| {
        scope.spawn(move || {
            let (mut socket, _) = gateway.accept().unwrap();
            socket.write_all(b"\x89volgtw\x01").unwrap();
            socket.write_all(&[7; 32]).unwrap();
            let mut header = [0; 69];
            socket.read_exact(&mut header).unwrap();
            let lengths = [65, 67].map(|at| u16::from_le_bytes([header[at], header[at + 1]]));
            let rest = usize::from(lengths[0]) + usize::from(lengths[1]) + 64;
            socket.read_exact(&mut vec![0; rest]).unwrap();
            socket.write_all(&[0]).unwrap();
        });
        let one = ticket(Role::Sender, 1, 1);
        both.meet_within(at, one, Duration::from_secs(5)).map(drop)
    });
    assert!(
        matches!(&lost, Err(Error::TimedOut(why)) if why.contains("gateway went away")),
        "{lost:?}"
    );
}

#[test]
fn a_client_waits_no_longer_than_it_is_told() {
    let both = Both::new();
    let running = both.start(Limits::default());
    let short = Duration::from_secs(1);
    let start = Instant::now();
    let one = ticket(Role::Sender, 1, 1);
    let alone = both.meet_within(running.address, one, short).map(drop);
    assert!(matches!(&alone, Err(Error::Absent(time)) if *time == short));
    // Nothing listens; something else does, and is silent, or speaks.
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for at in [unused, silent.local_addr().unwrap()] {
        let absent = both.meet_within(at, one, short).map(drop);
        let Err(Error::TimedOut(why)) = absent else { panic!("{absent:?}") };
        assert!(why.contains("no gateway answered"), "{why}");
    }
    assert!(start.elapsed() < PATIENCE / 2);
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = web.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = web.accept().unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
            // A gateway of another version.
            let (mut socket, _) = web.accept().unwrap();
            socket.write_all(b"\x89volgtw\x02").unwrap();
            socket.write_all(&[0; 100]).unwrap();
            let _ = socket.read(&mut [0]);
        });
        let other = both.meet(at, one).map(drop);
        assert!(matches!(other, Err(Error::PeerMisbehaved(why)) if why.contains("no gateway")));
        let other = both.meet(at, one).map(drop);
        assert!(matches!(other, Err(Error::PeerMisbehaved(why)) if why.contains("no gateway")));
    });
    // And it can be cancelled.
    let patience = Patience::from(PATIENCE);
    let cancel = patience.cancel.clone();
    thread::scope(|scope| {
        let (both, at) = (&both, running.address);
        let waiting =
            scope.spawn(move || both.meet_within(at, ticket(Role::Sender, 9, 1), patience));
        running.wait_for_waiting(2);
        let start = Instant::now();
        cancel.cancel();
        assert!(matches!(waiting.join().unwrap().map(drop), Err(Error::Cancelled)));
        assert!(start.elapsed() < Duration::from_secs(1));
    });
}

const CHALLENGE: [u8; 32] = [3; 32];

#[test]
fn a_damaged_ticket_is_refused_without_panic() {
    let both = Both::new();
    let one = ticket(Role::Receiver, 4, 2);
    let leaf = both.leaf(&one);
    let [sender, receiver] = both.prints();
    let bytes = signed(&one, [&leaf, &both.0[1]], &leaf, sender, &CHALLENGE);
    let check = |bytes: &[u8]| ticket_for_tests(bytes, &CHALLENGE, &[sender, receiver]);
    assert_eq!(check(&bytes), Ok((one, receiver)));
    assert!((600..800).contains(&bytes.len()), "{}", bytes.len());
    for end in 0..bytes.len() {
        assert_eq!(check(&bytes[..end]), Err(Reason::Malformed));
    }
    for place in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut bytes = bytes.clone();
            bytes[place] ^= bit;
            assert!(check(&bytes).is_err(), "byte {place}");
        }
    }
    // Lengths beyond the bound are refused before anything of that length is read.
    for place in [65, 67] {
        let mut long = bytes[..69].to_vec();
        long[place..place + 2].copy_from_slice(&4097_u16.to_le_bytes());
        long.extend([0; 10_000]);
        assert_eq!(check(&long), Err(Reason::Malformed));
        long[place..place + 2].copy_from_slice(&0_u16.to_le_bytes());
        assert_eq!(check(&long), Err(Reason::Malformed));
    }
    let mut side = bytes;
    side[32] = 2;
    assert_eq!(check(&side), Err(Reason::Malformed));
}
