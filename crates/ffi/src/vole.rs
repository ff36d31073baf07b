//! Streams of vector OLE over each ring.

use bytemuck::Pod;
use volery::channel::Role;
use volery::field::{Fp61, Gf128, Ring, Z64};
use volery::pcg::Kind;
use volery::primitives::Block;
use volery::primitives::pages::Buffer;
use volery::vole::{self, VoleRing};

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
    extend: Box<Extend>,
}

/// Fills the two columns of a sender, or the first one.
type Extend = dyn FnMut([&mut [u64]; 2]) -> volery::channel::Result<()> + Send;

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

impl Stream {
    fn new<R: VoleRing>(
        options: &Options,
        x: Buffer<u64>,
        extend: impl FnMut([&mut [u64]; 2]) -> volery::channel::Result<()> + Send + 'static,
    ) -> Self {
        Self { left: Remainder(options.total), width: R::WORDS, x, extend: Box::new(extend) }
    }

    fn sender<R: VoleRing + Pod>(transport: CallbackTransport, options: &Options) -> Result<Self> {
        let plan = options.plan(Kind::Vole(R::FIELD))?;
        let mut session = begin(transport, &plan.hello(Role::Sender))?;
        let mut stream = vole::Sender::<R>::start(&plan, &mut session)?;
        session.flush()?;
        Ok(Self::new::<R>(options, Buffer::zeroed(0), move |[u, v]| {
            as_elements(u, |u| as_elements(v, |v| stream.extend(u, v, &mut session)))?;
            session.flush()
        }))
    }

    fn receiver<R: VoleRing + Pod>(
        transport: CallbackTransport,
        options: &Options,
        x: Option<R>,
    ) -> Result<Self> {
        let plan = options.plan(Kind::Vole(R::FIELD))?;
        let mut session = begin(transport, &plan.hello(Role::Receiver))?;
        let mut stream = vole::Receiver::<R>::start(&plan, x, &mut session)?;
        session.flush()?;
        let mut words = Buffer::zeroed(R::WORDS);
        words.copy_from_slice(bytemuck::cast_slice(&[stream.x()]));
        Ok(Self::new::<R>(options, words, move |[w, _]| {
            as_elements(w, |w| stream.extend(w, &mut session))?;
            session.flush()
        }))
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
        sender.put(match RingName::new(ring)? {
            RingName::Fp61 => Stream::sender::<Fp61>(transport, &options)?,
            RingName::Gf128 => Stream::sender::<Gf128>(transport, &options)?,
            RingName::Z64 => Stream::sender::<Z64>(transport, &options)?,
        })
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
            (sender.extend)([&mut u, &mut v])?;
            u.keep();
            v.keep();
            Ok(())
        })
    })
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
        let ring = RingName::new(ring)?;
        let x = x.optional_slice(ring.words(), "x")?;
        receiver.put(match ring {
            RingName::Fp61 => {
                let field = |x| {
                    let x = Fp61::new(x);
                    x.ok_or_else(|| Failure::usage("x is not below the modulus 2^61 - 1"))
                };
                let x = x.map(|x| field(x[0])).transpose()?;
                Stream::receiver(transport, &options, x)?
            }
            RingName::Gf128 => {
                let x = x.map(|x| Gf128::new(Block::from_words(x[0], x[1])));
                Stream::receiver(transport, &options, x)?
            }
            RingName::Z64 => {
                let x = x.map(|x| Z64::new(x[0]));
                Stream::receiver(transport, &options, x)?
            }
        })
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
            (receiver.extend)([&mut w, &mut []])?;
            w.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_vole_receiver_free(receiver: Handle<Stream>) {
    receiver.free();
}
