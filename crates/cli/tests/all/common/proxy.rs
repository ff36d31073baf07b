//! A proxy between two processes that changes their bytes as a bad network or a malicious peer
//! would.

use std::io::{self, Read as _, Write as _};
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
}

/// The bytes to act on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tampering {
    /// The direction: bytes of the side that listens, or of the side that connects.
    pub(crate) of_listener: bool,
    /// The number of bytes of the protocol, without frames, that pass unchanged first.
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
        let pass = Tampering { act: Act::Pass, ..tampering };
        let (back, forth) =
            if tampering.of_listener { (tampering, pass) } else { (pass, tampering) };
        let copies = (near.try_clone().unwrap(), far.try_clone().unwrap(), begun.clone());
        thread::spawn(move || pump(copies.0, copies.1, forth, &copies.2));
        pump(far, near, back, &begun);
    });
    (port, begins)
}

/// One direction of a connection, without its frames: the protocol's own bytes.
struct Inner {
    from: TcpStream,
    to: TcpStream,
    /// Bytes of the current frame still to come.
    left: usize,
    /// Nothing more passes.
    stalled: bool,
}

impl Inner {
    /// Passes the greeting on.
    fn new(mut from: TcpStream, mut to: TcpStream) -> io::Result<Self> {
        let mut greeting = [0; 12];
        from.read_exact(&mut greeting)?;
        to.write_all(&greeting)?;
        let (left, stalled) = (0, false);
        Ok(Self { from, to, left, stalled })
    }

    /// The next bytes, at most to the end of a frame; passes heartbeats on.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let mut header = [0; 4];
            self.from.read_exact(&mut header)?;
            let [kind, a, b, c] = header;
            self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
            if kind == 1 && !self.stalled {
                self.to.write_all(&header)?;
            }
        }
        let most = bytes.len().min(self.left);
        let count = self.from.read(&mut bytes[..most])?;
        self.left -= count;
        Ok(count)
    }

    /// Sends bytes in a frame of their own.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() || self.stalled {
            return Ok(());
        }
        let [a, b, c, _] = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        self.to.write_all(&[&[0, a, b, c], bytes].concat())
    }
}

/// Copies one direction until its end, and passes the end on.
fn pump(from: TcpStream, to: TcpStream, tampering: Tampering, begun: &mpsc::Sender<()>) {
    let end = to.try_clone().unwrap();
    // The end of a connection, or its loss, ends the copying.
    let _ = Inner::new(from, to).and_then(|inner| copy(inner, tampering, begun));
    let _ = end.shutdown(Shutdown::Both);
}

fn copy(mut inner: Inner, tampering: Tampering, begun: &mpsc::Sender<()>) -> io::Result<()> {
    let mut left = tampering.at;
    let mut act = Some(tampering.act).filter(|act| *act != Act::Pass);
    let mut bytes = vec![0; 1 << 16];
    loop {
        if left == 0
            && let Some(act) = act.take()
        {
            // The receiver of the signal may be gone.
            let _ = begun.send(());
            match act {
                Act::Pass => {}
                Act::Cut => return inner.from.shutdown(Shutdown::Both),
                Act::Stall => inner.stalled = true,
                Act::Insert(count) => inner.write(&vec![0x5a; count])?,
            }
        }
        let wanted = match act {
            Some(_) => bytes.len().min(usize::try_from(left).unwrap()),
            None => bytes.len(),
        };
        let count = match inner.read(&mut bytes[..wanted])? {
            0 => return Ok(()),
            count => count,
        };
        left = left.saturating_sub(count as u64);
        inner.write(&bytes[..count])?;
    }
}
