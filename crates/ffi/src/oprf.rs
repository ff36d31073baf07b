//! The batched oblivious PRF.

use volery::channel::Role;
use volery::pcg::Security;
use volery::primitives::Block;
use volery::psi::vole::{self, Form, Keys, Settings};

use crate::options::{Options, Raw};
use crate::raw::{Bytes, Callbacks, Handle, In, NewObject, Out};
use crate::status::{Failure, Result, guard};
use crate::transport::{Bytes16, begin};

/// The settings of a run, which has no total and chooses its own link.
fn settings(options: &In<Raw>) -> Result<(Options, Settings)> {
    let options = Options::read(options)?;
    if options.total.is_some() {
        let message = "options: total is for streams: leave it 0 here";
        return Err(Failure::usage(message));
    }
    let form = match options.security {
        Security::Malicious => Form::Malicious,
        _ => Form::Fast,
    };
    Ok((options, Settings { form, both: false }))
}

/// Copies outputs to the caller.
fn copy(outputs: &[Block], out: &mut Out<Bytes16>) -> Result {
    let mut out = out.slice(outputs.len(), "outputs")?;
    out.as_flattened_mut().copy_from_slice(Block::as_bytes(outputs));
    out.keep();
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn volery_oprf_sender_new(
    transport: In<Callbacks>,
    options: In<Raw>,
    mut sender: NewObject<Keys>,
) -> i32 {
    guard(|| {
        let sender = sender.clear()?;
        let (transport, (options, settings)) = (transport.connected()?, settings(&options)?);
        let mut session = begin(transport, &settings.hello("oprf", Role::Sender), &options)?;
        let party = vole::Sender::start(&mut session);
        let keys = party.keys(settings.form, &mut (), &mut session)?;
        session.flush()?;
        sender.put(keys)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_oprf_sender_items(sender: Handle<Keys>, mut items: Out<u64>) -> i32 {
    guard(|| {
        sender.get()?.call(|keys| {
            let mut items = items.slice(1, "items")?;
            items.fill(keys.parameters().receiver_items);
            items.keep();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_oprf_sender_evaluate(
    sender: Handle<Keys>,
    items: In<Bytes>,
    mut outputs: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| {
        outputs.check(n, "outputs")?;
        let items = items.strings(n)?;
        let blocks = sender.get()?.call(|keys| Ok(keys.evaluate(&items)))?;
        copy(&blocks, &mut outputs)
    })
}

#[unsafe(no_mangle)]
extern "C" fn volery_oprf_sender_free(sender: Handle<Keys>) {
    sender.free();
}

#[unsafe(no_mangle)]
extern "C" fn volery_oprf_receive(
    transport: In<Callbacks>,
    options: In<Raw>,
    items: In<Bytes>,
    mut outputs: Out<Bytes16>,
    n: usize,
) -> i32 {
    guard(|| {
        outputs.check(n, "outputs")?;
        let items = items.strings(n)?;
        let (transport, (options, settings)) = (transport.connected()?, settings(&options)?);
        let mut session = begin(transport, &settings.hello("oprf", Role::Receiver), &options)?;
        let party = vole::Receiver::start(&mut session);
        let outcome = party.outputs(&items, settings.form, &mut (), &mut session)?;
        session.flush()?;
        copy(&outcome.outputs, &mut outputs)
    })
}
