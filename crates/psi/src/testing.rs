//! Messages of dishonest senders: changes of honest ones, for tests of other crates.

use volery_channel::Channel;

use crate::rice::Rice;

/// The last message of a sender of malicious VOLE-PSI (module [`vole`](crate::vole)): its share of
/// the offset of step 5a, the tags of step 7, in a search the values, and the end.
const SHARE: usize = 32;
const END: usize = 16;

/// The bits of a tag in the malicious form.
const BITS: u32 = 128;

/// The format of the tags, if a message of this length is such a last one. `value`: in a search
/// the bytes of a ciphertext, 0 otherwise.
fn format(length: usize, value: usize) -> Option<(Rice, u64)> {
    let formats = (1..=length as u64 / 16).map(|tags| (Rice::new(tags, BITS), tags));
    let of_length = |(format, tags): &(Rice, u64)| {
        SHARE + END + format.bytes() as usize + *tags as usize * value == length
    };
    formats.into_iter().find(of_length)
}

/// Whether a message of this length is a sender's last one.
#[must_use]
pub fn is_last(length: usize, value: usize) -> bool {
    format(length, value).is_some()
}

/// Gives the tag behind the one of number `at` the same value. Nothing changes if the message is
/// no last one, or has no two tags from there on.
///
/// # Panics
/// If a channel in memory fails.
pub fn repeat_tag(message: &mut [u8], value: usize, at: usize) {
    let Some((format, _)) = format(message.len(), value) else {
        return;
    };
    let coding = &mut message[SHARE..][..format.bytes() as usize];
    let (mut near, mut far) = Channel::memory_pair();
    far.send(coding).expect("in memory");
    far.flush().expect("in memory");
    let mut tags = Vec::new();
    let read = format.receive(true).read(usize::MAX, &mut tags, &mut near);
    if read.is_err() || at + 1 >= tags.len() {
        return;
    }
    tags[at + 1] = tags[at];
    format.send(tags.into_iter(), &mut far).expect("as many tags");
    far.flush().expect("in memory");
    near.recv(coding).expect("in memory");
}

/// Changes byte number `at` of all values in a search, whose length is before them in two bytes,
/// by addition as they are encrypted: number 1 is the higher one of the length. Nothing changes if
/// the message is no last one.
pub fn change_values(message: &mut [u8], value: usize, at: usize) {
    let Some((format, tags)) = format(message.len(), value) else {
        return;
    };
    let first = SHARE + format.bytes() as usize;
    for tag in 0..tags as usize {
        message[first + tag * value + at] ^= 0xff;
    }
}
