//! Correlated OT into memory of a CUDA card. In a build without the feature `gpu` every function
//! refuses.

#![cfg_attr(not(feature = "gpu"), allow(unused, reason = "every function refuses"))]

#[cfg(feature = "gpu")]
use volery::card::{CotReceiver, CotSender};
use volery::channel::{Role, Session};
use volery::pcg::{Device, Kind, Plan};
use volery::primitives::Block;

use crate::options::{Options, Raw, Remainder};
use crate::raw::{Callbacks, Handle, In, NewObject, OnDevice, Out};
use crate::status::{Failure, Result, guard};
use crate::transport::{Bytes16, begin, given_delta};

#[cfg(not(feature = "gpu"))]
enum CotSender {}
#[cfg(not(feature = "gpu"))]
enum CotReceiver {}

/// `volery_cot_sender_on_device` and `volery_cot_receiver_on_device`.
struct Party<T> {
    session: Session,
    left: Remainder,
    cot: T,
}

/// Runs the body of a function, where there is support for cards.
macro_rules! with_cards {
    ($body:expr) => {{
        #[cfg(feature = "gpu")]
        let status = guard($body);
        #[cfg(not(feature = "gpu"))]
        let status = guard(|| Err(Failure::usage(volery::pcg::PlanError::NoCards)));
        status
    }};
}

/// The options, and their plan on the card of that number, which works.
fn planned(options: &In<Raw>, device: i32) -> Result<(Options, Plan)> {
    let options = Options::read(options)?;
    let number = usize::try_from(device);
    let number = number.map_err(|_| Failure::usage("device: the numbers of cards begin with 0"))?;
    let plan = options.plan(Kind::Cot)?.on(Device::Cuda(number));
    let plan = plan.map_err(|error| Failure::usage(format!("options: for_cards is 0: {error}")))?;
    plan.used_device().map_err(Failure::usage)?;
    Ok((options, plan))
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_on_device_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    delta: In<Bytes16>,
    device: i32,
    mut sender: NewObject<Party<CotSender>>,
) -> i32 {
    with_cards!(|| {
        let sender = sender.clear()?;
        let (transport, delta) = (transport.connected()?, given_delta(&delta)?);
        let (options, plan) = planned(&options, device)?;
        let mut session = begin(transport, &plan.hello(Role::Sender), &options)?;
        let (id, rng, channel) = session.parts();
        let cot = CotSender::setup(&plan, delta, id, rng, channel)?;
        session.flush()?;
        sender.put(Party { session, left: Remainder(options.total), cot })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_on_device_delta(
    sender: Handle<Party<CotSender>>,
    mut delta: Out<Bytes16>,
) -> i32 {
    with_cards!(|| {
        sender.get()?.call(|sender| {
            let mut delta = delta.slice(1, "delta")?;
            delta.fill(sender.cot.delta().to_bytes());
            delta.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_on_device_extend(
    sender: Handle<Party<CotSender>>,
    mut v: OnDevice<Block>,
    n: usize,
) -> i32 {
    with_cards!(|| {
        sender.get()?.call(|sender| {
            let left = sender.left.after(n)?;
            let mut v = v.part(sender.cot.device(), n, "v")?;
            sender.left = left;
            sender.cot.extend(&mut v, &mut sender.session)?;
            Ok(sender.session.flush()?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_sender_on_device_free(sender: Handle<Party<CotSender>>) {
    sender.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_on_device_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    device: i32,
    mut receiver: NewObject<Party<CotReceiver>>,
) -> i32 {
    with_cards!(|| {
        let receiver = receiver.clear()?;
        let transport = transport.connected()?;
        let (options, plan) = planned(&options, device)?;
        let mut session = begin(transport, &plan.hello(Role::Receiver), &options)?;
        let (id, rng, channel) = session.parts();
        let cot = CotReceiver::setup(&plan, id, rng, channel)?;
        session.flush()?;
        receiver.put(Party { session, left: Remainder(options.total), cot })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_on_device_extend(
    receiver: Handle<Party<CotReceiver>>,
    mut u: OnDevice<u32>,
    mut w: OnDevice<Block>,
    n: usize,
) -> i32 {
    with_cards!(|| {
        receiver.get()?.call(|receiver| {
            let left = receiver.left.after(n)?;
            let card = receiver.cot.device();
            let (mut u, mut w) = (u.part(card, n.div_ceil(32), "u")?, w.part(card, n, "w")?);
            receiver.left = left;
            receiver.cot.extend(&mut u, &mut w, &mut receiver.session)?;
            Ok(receiver.session.flush()?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_cot_receiver_on_device_free(receiver: Handle<Party<CotReceiver>>) {
    receiver.free();
}
