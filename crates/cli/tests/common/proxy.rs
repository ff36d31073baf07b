//! A proxy between two processes that changes their bytes as a bad network or a malicious peer
//! would.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

/// The action once a number of bytes of one direction have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// No action.
    Pass,
    /// The connection is cut.
    Cut,
    /// Nothing more of this direction arrives.
    Stall,
    /// Extra bytes are inserted.
    Insert(usize),
    /// This many bytes are left out.
    Drop(usize),
    /// The next eight bytes change: this number is XORed to them, little-endian.
    Xor(u64),
}

/// The bytes to act on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tampering {
    /// The direction: bytes of the side that listens, or of the side that connects.
    pub(crate) of_listener: bool,
    /// The number of bytes that pass unchanged first.
    pub(crate) at: u64,
    pub(crate) act: Act,
}

/// Opens a proxy to a port of this machine. Returns its own port, and a channel that signals when
/// the tampering begins.
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

/// Copies one direction until its end, and passes the end on.
fn pump(mut from: TcpStream, mut to: TcpStream, tampering: Tampering, begun: &mpsc::Sender<()>) {
    let mut left = tampering.at;
    let mut act = Some(tampering.act).filter(|act| *act != Act::Pass);
    let mut skip = 0;
    let mut bytes = vec![0; 1 << 16];
    loop {
        if left == 0
            && let Some(act) = act.take()
        {
            // The receiver of the signal may be gone.
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
