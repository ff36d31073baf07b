//! Streams of vector OLE over each ring.

use bytemuck::Pod;
use volery::channel::{self, Channel, Hello, Role, SessionId};
use volery::field::{Fp61, Gf128, Ring, Z64};
use volery::pcg::Kind;
use volery::primitives::Block;
use volery::primitives::pages::Buffer;
use volery::primitives::prg::Prg;
use volery::vole::{self, VoleRing, shared_setup};

use crate::options::{Options, Raw, Remainder};
use crate::raw::{CallbackTransport, Callbacks, Handle, In, NewObject, Out};
use crate::status::{Failure, Result, guard};
use crate::transport::{as_elements, begin};

/// `volery_vole_sender` and `volery_vole_receiver`: a party over any ring, in words.
struct Stream {
    left: Remainder,
    /// Words of an element.
    width: usize,
    /// The receiver's `x`.
    x: Buffer<u64>,
    party: Box<dyn Party>,
}

/// A party over some ring, and its channel.
trait Party: Send {
    /// Fills the two columns of a sender, or the first one.
    fn extend(&mut self, columns: [&mut [u64]; 2]) -> channel::Result<()>;

    /// Prepares a round; the correlations that then take no message.
    fn prepare(&mut self) -> channel::Result<usize>;
}

impl<R: VoleRing + Pod> Party for (vole::Sender<R>, Channel) {
    fn extend(&mut self, [u, v]: [&mut [u64]; 2]) -> channel::Result<()> {
        let (stream, channel) = self;
        as_elements(u, |u| as_elements(v, |v| stream.extend(u, v, channel)))?;
        channel.flush()
    }

    fn prepare(&mut self) -> channel::Result<usize> {
        let ready = self.0.prepare(&mut self.1)?;
        self.1.flush()?;
        Ok(ready)
    }
}

impl<R: VoleRing + Pod> Party for (vole::Receiver<R>, Channel) {
    fn extend(&mut self, [w, _]: [&mut [u64]; 2]) -> channel::Result<()> {
        let (stream, channel) = self;
        as_elements(w, |w| stream.extend(w, channel))?;
        channel.flush()
    }

    fn prepare(&mut self) -> channel::Result<usize> {
        let ready = self.0.prepare(&mut self.1)?;
        self.1.flush()?;
        Ok(ready)
    }
}

/// `volery_vole_setup_sender` and `volery_vole_setup_receiver`.
struct Setup<S> {
    shared: S,
    transport: CallbackTransport,
    /// Forked for each stream.
    rng: Prg,
}

type SetupSender = Setup<shared_setup::Sender>;
type SetupReceiver = Setup<shared_setup::Receiver>;

/// Where a stream begins: on a transport with a handshake and a setup of its own, or on a shared
/// one.
enum Start<'a, S> {
    Own(CallbackTransport),
    Shared(&'a mut Setup<S>),
}

/// The rings of the header.
#[derive(Clone, Copy)]
enum RingName {
    Fp61 = 1,
    Gf128 = 2,
    Z64 = 3,
}

impl RingName {
    fn new(number: i32) -> Result<Self> {
        let found =
            [Self::Fp61, Self::Gf128, Self::Z64].into_iter().find(|ring| *ring as i32 == number);
        found.ok_or_else(|| {
            Failure::usage(format!("ring is {number}: use VOLERY_FP61, VOLERY_GF128 or VOLERY_Z64"))
        })
    }

    const fn words(self) -> usize {
        match self {
            Self::Fp61 => Fp61::WORDS,
            Self::Gf128 => Gf128::WORDS,
            Self::Z64 => Z64::WORDS,
        }
    }
}

impl<S> Setup<S> {
    /// The handshake, then `setup`.
    fn new(
        transport: CallbackTransport,
        options: &Options,
        role: Role,
        setup: impl FnOnce(SessionId, Prg, &mut Channel) -> channel::Result<S>,
    ) -> Result<Self> {
        let fields = vec![("security", options.security.to_string())];
        let hello = Hello { protocol: "vole setup", role: role.name(), fields };
        let mut session = begin(transport, &hello, options)?;
        let (id, rng, channel) = session.parts();
        let shared = setup(id, rng, channel)?;
        let (_, rng, channel) = session.parts();
        channel.flush()?;
        Ok(Self { shared, transport, rng })
    }

    /// Runs `setup` with randomness of its own on a new channel.
    fn stream<T>(
        &mut self,
        setup: impl FnOnce(&mut S, Prg, &mut Channel) -> channel::Result<T>,
    ) -> channel::Result<(T, Channel)> {
        let mut channel = Channel::new(self.transport);
        let stream = setup(&mut self.shared, self.rng.fork("vector-OLE"), &mut channel)?;
        channel.flush()?;
        Ok((stream, channel))
    }
}

impl Stream {
    fn new<R: VoleRing>(options: &Options, x: Option<R>, party: impl Party + 'static) -> Self {
        let mut words = Buffer::zeroed(x.map_or(0, |_| R::WORDS));
        if let Some(x) = x {
            words.copy_from_slice(bytemuck::cast_slice(&[x]));
        }
        Self { left: Remainder(options.total), width: R::WORDS, x: words, party: Box::new(party) }
    }

    fn sender<R: VoleRing + Pod>(
        start: Start<'_, shared_setup::Sender>,
        options: &Options,
    ) -> Result<Self> {
        let plan = options.plan(Kind::Vole(R::FIELD))?;
        let party = match start {
            Start::Own(transport) => {
                let mut session = begin(transport, &plan.hello(Role::Sender), options)?;
                let stream = vole::Sender::<R>::start(&plan, &mut session)?;
                session.flush()?;
                (stream, session.into_channel())
            }
            Start::Shared(setup) => setup.stream(|shared, rng, channel| {
                vole::Sender::<R>::setup_with(shared, &plan, rng, channel)
            })?,
        };
        Ok(Self::new::<R>(options, None, party))
    }

    fn receiver<R: VoleRing + Pod>(
        start: Start<'_, shared_setup::Receiver>,
        options: &Options,
        x: Option<R>,
    ) -> Result<Self> {
        let plan = options.plan(Kind::Vole(R::FIELD))?;
        let party = match start {
            Start::Own(transport) => {
                let mut session = begin(transport, &plan.hello(Role::Receiver), options)?;
                let stream = vole::Receiver::<R>::start(&plan, x, &mut session)?;
                session.flush()?;
                (stream, session.into_channel())
            }
            Start::Shared(setup) => setup.stream(|shared, rng, channel| {
                vole::Receiver::<R>::setup_with(shared, &plan, x, rng, channel)
            })?,
        };
        Ok(Self::new(options, Some(party.0.x()), party))
    }

    /// A sender over the ring of this number.
    fn sender_over(
        ring: i32,
        start: Start<'_, shared_setup::Sender>,
        options: &Options,
    ) -> Result<Self> {
        match RingName::new(ring)? {
            RingName::Fp61 => Self::sender::<Fp61>(start, options),
            RingName::Gf128 => Self::sender::<Gf128>(start, options),
            RingName::Z64 => Self::sender::<Z64>(start, options),
        }
    }

    /// A receiver over the ring of this number.
    fn receiver_over(
        ring: i32,
        x: &In<u64>,
        start: Start<'_, shared_setup::Receiver>,
        options: &Options,
    ) -> Result<Self> {
        let ring = RingName::new(ring)?;
        let x = x.optional_slice(ring.words(), "x")?;
        match ring {
            RingName::Fp61 => {
                let field = |x| {
                    let x = Fp61::new(x);
                    x.ok_or_else(|| Failure::usage("x is not below the modulus 2^61 - 1"))
                };
                Self::receiver(start, options, x.map(|x| field(x[0])).transpose()?)
            }
            RingName::Gf128 => {
                let x = x.map(|x| Gf128::new(Block::from_words(x[0], x[1])));
                Self::receiver(start, options, x)
            }
            RingName::Z64 => Self::receiver(start, options, x.map(|x| Z64::new(x[0]))),
        }
    }

    /// Prepares a round, and writes the correlations that then take no message.
    fn prepare(handle: &Handle<Self>, ready: &mut Out<u64>) -> Result {
        handle.get()?.call(|stream| {
            let mut ready = ready.slice(1, "ready")?;
            ready.fill(stream.party.prepare()? as u64);
            ready.keep();
            Ok(())
        })
    }
}

/// The words of `n` elements of this many words.
fn words(n: usize, width: usize) -> Result<usize> {
    let words = n.checked_mul(width);
    words.ok_or_else(|| Failure::usage(format!("{n} correlations are more than the memory has")))
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_sender_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    ring: i32,
    mut sender: NewObject<Stream>,
) -> i32 {
    guard(|| {
        let sender = sender.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        sender.put(Stream::sender_over(ring, Start::Own(transport), &options)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_sender_extend(
    sender: Handle<Stream>,
    mut u: Out<u64>,
    mut v: Out<u64>,
    n: usize,
) -> i32 {
    guard(|| {
        sender.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let words = words(n, sender.width)?;
            let (mut u, mut v) = u.with(words, (&mut v, words), ["u", "v"])?;
            sender.left = left;
            sender.party.extend([&mut u, &mut v])?;
            u.keep();
            v.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_sender_prepare(sender: Handle<Stream>, mut ready: Out<u64>) -> i32 {
    guard(|| Stream::prepare(&sender, &mut ready))
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_sender_free(sender: Handle<Stream>) {
    sender.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    ring: i32,
    x: In<u64>,
    mut receiver: NewObject<Stream>,
) -> i32 {
    guard(|| {
        let receiver = receiver.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        receiver.put(Stream::receiver_over(ring, &x, Start::Own(transport), &options)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_x(receiver: Handle<Stream>, mut x: Out<u64>) -> i32 {
    guard(|| {
        receiver.get()?.call(|receiver| {
            let mut x = x.slice(receiver.width, "x")?;
            x.copy_from_slice(&receiver.x);
            x.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_extend(
    receiver: Handle<Stream>,
    mut w: Out<u64>,
    n: usize,
) -> i32 {
    guard(|| {
        receiver.get()?.call(|receiver| {
            let left = receiver.left.after(n)?;
            let mut w = w.slice(words(n, receiver.width)?, "w")?;
            receiver.left = left;
            receiver.party.extend([&mut w, &mut []])?;
            w.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_prepare(receiver: Handle<Stream>, mut ready: Out<u64>) -> i32 {
    guard(|| Stream::prepare(&receiver, &mut ready))
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_free(receiver: Handle<Stream>) {
    receiver.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_sender_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    mut setup: NewObject<SetupSender>,
) -> i32 {
    guard(|| {
        let setup = setup.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        let new = shared_setup::Sender::setup;
        setup.put(Setup::new(transport, &options, Role::Sender, new)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_sender_stream(
    setup: Handle<SetupSender>,
    options: In<Raw>,
    ring: i32,
    mut sender: NewObject<Stream>,
) -> i32 {
    guard(|| {
        let sender = sender.clear()?;
        let options = Options::read(&options)?;
        let start = |setup: &mut _| Stream::sender_over(ring, Start::Shared(setup), &options);
        sender.put(setup.get()?.call(start)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_sender_free(setup: Handle<SetupSender>) {
    setup.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_receiver_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    mut setup: NewObject<SetupReceiver>,
) -> i32 {
    guard(|| {
        let setup = setup.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        let new = shared_setup::Receiver::setup;
        setup.put(Setup::new(transport, &options, Role::Receiver, new)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_receiver_stream(
    setup: Handle<SetupReceiver>,
    options: In<Raw>,
    ring: i32,
    x: In<u64>,
    mut receiver: NewObject<Stream>,
) -> i32 {
    guard(|| {
        let receiver = receiver.clear()?;
        let options = Options::read(&options)?;
        let start = |setup: &mut _| Stream::receiver_over(ring, &x, Start::Shared(setup), &options);
        receiver.put(setup.get()?.call(start)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_setup_receiver_free(setup: Handle<SetupReceiver>) {
    setup.free();
}
