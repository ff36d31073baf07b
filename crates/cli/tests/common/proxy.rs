//! A wire between two processes that does to their bytes what a bad network or a hostile peer would.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

/// What happens once a number of bytes of one direction have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Nothing.
    Pass,
    /// The connection is cut.
    Cut,
    /// Nothing more of this direction arrives.
    Stall,
    /// Bytes that nobody sent come first.
    Insert(usize),
    /// So many bytes are left out.
    Drop(usize),
    /// The next eight bytes are another number: to that which they are, little-endian, this one is added bit by bit.
    Xor(u64),
}

/// Which bytes it happens to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tampering {
    /// Those of the side that listens, or those of the side that connects.
    pub(crate) of_listener: bool,
    /// After so many.
    pub(crate) at: u64,
    pub(crate) act: Act,
}

/// Opens a wire to a port of this machine. Gives the port at its other end, and what tells when the tampering begins.
pub(crate) fn wire(to: u16, tampering: Tampering) -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (begun, begins) = mpsc::channel();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).unwrap();
        let pass = Tampering {
            act: Act::Pass,
            ..tampering
        };
        let (back, forth) = if tampering.of_listener {
            (tampering, pass)
        } else {
            (pass, tampering)
        };
        let copies = (
            near.try_clone().unwrap(),
            far.try_clone().unwrap(),
            begun.clone(),
        );
        thread::spawn(move || pump(copies.0, copies.1, forth, &copies.2));
        pump(far, near, back, &begun);
    });
    (port, begins)
}

/// Copies one direction until its end, which it passes on.
fn pump(mut from: TcpStream, mut to: TcpStream, tampering: Tampering, begun: &mpsc::Sender<()>) {
    let mut left = tampering.at;
    let mut act = Some(tampering.act).filter(|act| *act != Act::Pass);
    let mut skip = 0;
    let mut bytes = vec![0; 1 << 16];
    loop {
        if left == 0
            && let Some(act) = act.take()
        {
            // Nobody may be listening.
            let _ = begun.send(());
            match act {
                Act::Pass => {}
                Act::Cut => {
                    let _ = from.shutdown(Shutdown::Both);
                    break;
                }
                Act::Stall => skip = usize::MAX,
                Act::Insert(count) => {
                    if to.write_all(&vec![0x5a; count]).is_err() {
                        break;
                    }
                }
                Act::Drop(count) => skip = count,
                Act::Xor(mask) => {
                    let mut number = [0; 8];
                    if from.read_exact(&mut number).is_err() {
                        break;
                    }
                    let other = u64::from_le_bytes(number) ^ mask;
                    if to.write_all(&other.to_le_bytes()).is_err() {
                        break;
                    }
                }
            }
        }
        let wanted = match act {
            Some(_) => bytes.len().min(usize::try_from(left).unwrap()),
            None => bytes.len(),
        };
        let count = match from.read(&mut bytes[..wanted]) {
            Ok(count) if count > 0 => count,
            _ => break,
        };
        left = left.saturating_sub(count as u64);
        let skipped = skip.min(count);
        if skip != usize::MAX {
            skip -= skipped;
        }
        if to.write_all(&bytes[skipped..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
