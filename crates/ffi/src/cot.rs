//! Streams of correlated OT, and every other form of OT made of them.

use volery::channel::{self, Channel, Role, Session};
use volery::cot;
use volery::ot::{CotReceiver as _, CotSender as _, convert};
use volery::pcg::Kind;
use volery::primitives::Block;
use volery::primitives::bits::bytes_for;

use crate::options::{Options, Raw, Remainder};
use crate::raw::{Callbacks, Handle, In, NewObject, Out};
use crate::status::{Failure, Result, guard};
use crate::transport::{Bytes16, as_elements, begin, blocks, given_delta};

/// `volery_cot_sender`.
struct Sender {
    session: Session,
    left: Remainder,
    ot: convert::Sender<cot::Sender>,
}

/// `volery_cot_receiver`.
struct Receiver {
    session: Session,
    left: Remainder,
    ot: Ot,
}

type Ot = convert::Receiver<cot::Receiver>;

/// Twice `n` blocks.
fn doubled(n: usize, name: &str) -> Result<usize> {
    let twice = n.checked_mul(2);
    twice.ok_or_else(|| Failure::usage(format!("{name}: {n} pairs are more than the memory has")))
}

/// The bytes of `n` strings of the same length.
fn string_bytes(n: usize, length: usize) -> Result<usize> {
    if length == 0 {
        return Err(Failure::usage("length is 0: a string has a byte at least"));
    }
    let bytes = n.checked_mul(length).filter(|bytes| *bytes <= isize::MAX as usize / 2);
    bytes.ok_or_else(|| Failure::usage(format!("{n} strings are more than the memory has")))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    delta: In<Bytes16>,
    mut sender: NewObject<Sender>,
) -> i32 {
    guard(|| {
        let sender = sender.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        let delta = given_delta(&delta)?;
        let plan = options.plan(Kind::Cot)?;
        let mut session = begin(transport, &plan.hello(Role::Sender), &options)?;
        let stream = cot::Sender::start(&plan, delta, &mut session)?;
        let hash = session.parts().0;
        session.flush()?;
        sender.put(Sender {
            session,
            left: Remainder(options.total),
            ot: convert::Sender::new(stream, hash),
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_delta(sender: Handle<Sender>, mut delta: Out<Bytes16>) -> i32 {
    guard(|| {
        sender.get()?.call(|sender| {
            let mut delta = delta.slice(1, "delta")?;
            delta.fill(sender.ot.delta().to_bytes());
            delta.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_prepare(sender: Handle<Sender>, mut ready: Out<u64>) -> i32 {
    guard(|| {
        sender.get()?.call(|sender| {
            let mut ready = ready.slice(1, "ready")?;
            ready.fill(sender.ot.source()?.prepare(&mut sender.session)? as u64);
            sender.session.flush()?;
            ready.keep();
            Ok(())
        })
    })
}

impl Sender {
    /// Makes `n` correlations, whose choice bits the receiver may have `chosen`.
    fn extend(handle: &Handle<Self>, v: &mut Out<Bytes16>, n: usize, chosen: bool) -> Result {
        handle.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let mut v = v.slice(n, "v")?;
            sender.left = left;
            let (ot, session) = (&mut sender.ot, &mut sender.session);
            as_elements(&mut v, |v| match chosen {
                true => ot.correlated_chosen(v, session),
                false => ot.source()?.extend(v, session),
            })?;
            sender.session.flush()?;
            v.keep();
            Ok(())
        })
    }

    /// Makes `n` pairs of messages.
    fn pairs(handle: &Handle<Self>, m: &mut Out<Bytes16>, n: usize, chosen: bool) -> Result {
        handle.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let mut m = m.slice(doubled(n, "m")?, "m")?;
            sender.left = left;
            let (ot, session) = (&mut sender.ot, &mut sender.session);
            as_elements(&mut m, |m: &mut [Block]| {
                let (m, _) = m.as_chunks_mut();
                match chosen {
                    true => ot.random_chosen(m, session),
                    false => ot.random(m, session),
                }
            })?;
            sender.session.flush()?;
            m.keep();
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_extend(
    sender: Handle<Sender>,
    mut v: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Sender::extend(&sender, &mut v, n, false))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_extend_chosen(
    sender: Handle<Sender>,
    mut v: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Sender::extend(&sender, &mut v, n, true))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_random(
    sender: Handle<Sender>,
    mut m: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Sender::pairs(&sender, &mut m, n, false))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_random_chosen(
    sender: Handle<Sender>,
    mut m: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Sender::pairs(&sender, &mut m, n, true))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_chosen(
    sender: Handle<Sender>,
    messages: In<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| {
        sender.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let messages = messages.slice(doubled(n, "messages")?, "messages")?;
            sender.left = left;
            let messages = blocks(messages);
            let (messages, _) = messages.as_chunks();
            sender.ot.chosen(messages, &mut sender.session)?;
            Ok(sender.session.flush()?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_chosen_bytes(
    sender: Handle<Sender>,
    zeros: In<u8>,
    ones: In<u8>,
    length: usize,
    n: usize,
) -> i32 {
    guard(|| {
        sender.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let bytes = string_bytes(n, length)?;
            let (zeros, ones) = (zeros.slice(bytes, "zeros")?, ones.slice(bytes, "ones")?);
            sender.left = left;
            sender.ot.chosen_bytes(zeros, ones, length, &mut sender.session)?;
            Ok(sender.session.flush()?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_free(sender: Handle<Sender>) {
    sender.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    mut receiver: NewObject<Receiver>,
) -> i32 {
    guard(|| {
        let receiver = receiver.clear()?;
        let (transport, options) = (transport.connected()?, Options::read(&options)?);
        let plan = options.plan(Kind::Cot)?;
        let mut session = begin(transport, &plan.hello(Role::Receiver), &options)?;
        let stream = cot::Receiver::start(&plan, &mut session)?;
        let hash = session.parts().0;
        session.flush()?;
        receiver.put(Receiver {
            session,
            left: Remainder(options.total),
            ot: convert::Receiver::new(stream, hash),
        })
    })
}

impl Receiver {
    /// Makes `n` random choice bits and a block for each: a message if `hashed`.
    fn random(
        handle: &Handle<Self>,
        u: &mut Out<u8>,
        w: &mut Out<Bytes16>,
        n: usize,
        hashed: bool,
    ) -> Result {
        let names = ["u", if hashed { "m" } else { "w" }];
        handle.get()?.call(|receiver| {
            let left = receiver.left.after(n)?;
            let (mut u, mut w) = u.with(bytes_for(n), (w, n), names)?;
            receiver.left = left;
            let (ot, session) = (&mut receiver.ot, &mut receiver.session);
            as_elements(&mut w, |w| match hashed {
                true => ot.random(&mut u, w, session),
                false => ot.source().extend(&mut u, w, session),
            })?;
            receiver.session.flush()?;
            u.keep();
            w.keep();
            Ok(())
        })
    }

    /// Gets a block for each of the `n` choice bits `x`, by one of the conversions.
    fn with_choices(
        handle: &Handle<Self>,
        x: &In<u8>,
        (m, name): (&mut Out<Bytes16>, &str),
        n: usize,
        convert: fn(&mut Ot, &[u8], &mut [Block], &mut Channel) -> channel::Result<()>,
    ) -> Result {
        handle.get()?.call(|receiver| {
            let left = receiver.left.after(n)?;
            let (mut m, x) = m.from(n, (x, bytes_for(n)), [name, "x"])?;
            receiver.left = left;
            let (ot, session) = (&mut receiver.ot, &mut receiver.session);
            as_elements(&mut m, |m| convert(ot, x, m, session))?;
            receiver.session.flush()?;
            m.keep();
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_extend(
    receiver: Handle<Receiver>,
    mut u: Out<u8>,
    mut w: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Receiver::random(&receiver, &mut u, &mut w, n, false))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_extend_chosen(
    receiver: Handle<Receiver>,
    x: In<u8>,
    mut w: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Receiver::with_choices(&receiver, &x, (&mut w, "w"), n, Ot::correlated_chosen))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_random(
    receiver: Handle<Receiver>,
    mut u: Out<u8>,
    mut m: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Receiver::random(&receiver, &mut u, &mut m, n, true))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_random_chosen(
    receiver: Handle<Receiver>,
    x: In<u8>,
    mut m: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Receiver::with_choices(&receiver, &x, (&mut m, "m"), n, Ot::random_chosen))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_chosen(
    receiver: Handle<Receiver>,
    x: In<u8>,
    mut m: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| Receiver::with_choices(&receiver, &x, (&mut m, "m"), n, Ot::chosen))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_chosen_bytes(
    receiver: Handle<Receiver>,
    x: In<u8>,
    mut m: Out<u8>,
    length: usize,
    n: usize,
) -> i32 {
    guard(|| {
        receiver.get()?.call(|receiver| {
            let left = receiver.left.after(n)?;
            let bytes = string_bytes(n, length)?;
            let (mut m, x) = m.from(bytes, (&x, bytes_for(n)), ["m", "x"])?;
            receiver.left = left;
            receiver.ot.chosen_bytes(x, &mut m, length, &mut receiver.session)?;
            receiver.session.flush()?;
            m.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_prepare(receiver: Handle<Receiver>, mut ready: Out<u64>) -> i32 {
    guard(|| {
        receiver.get()?.call(|receiver| {
            let mut ready = ready.slice(1, "ready")?;
            ready.fill(receiver.ot.source().prepare(&mut receiver.session)? as u64);
            receiver.session.flush()?;
            ready.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_free(receiver: Handle<Receiver>) {
    receiver.free();
}
