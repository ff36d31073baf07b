//! A WebSocket connection as a byte stream.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use tungstenite::Message;
use tungstenite::error::{Error as WsError, ProtocolError};
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};
use tungstenite::protocol::{Role, WebSocketConfig};
use volery_os::sync::{Arc, Mutex, MutexGuard};
use volery_os::thread;
use volery_os::time::{Duration, Instant};

use super::code;
use crate::pipe::{deadline_after, is_timeout, left, lock};
use crate::{Error, Transport};

/// Longest message, in bytes.
pub const LONGEST: usize = 1 << 20;

/// Bytes of a message from here: short enough that a page sees progress on a slow link.
const PIECE: usize = 64 << 10;

/// Bytes read at a time.
const BUFFER: usize = 32 << 10;

/// Answers to pings that wait while this side writes; later ones take the place of earlier ones.
const ANSWERS: usize = 4 << 10;

/// How long this side waits for the browser's answer to its close frame, once all is sent.
const LINGER: Duration = Duration::from_secs(2);

/// How long it waits at most in all.
const LONG_LINGER: Duration = Duration::from_secs(60);

/// The time between two looks at a connection that is being closed.
const TICK: Duration = Duration::from_millis(50);

/// The longest reason in a close frame, in bytes.
const REASON: usize = 123;

/// A WebSocket connection to a browser, after the handshake.
///
/// The payloads of its binary messages, one after the other, are the byte stream; where a message
/// ends means nothing. A close frame with code 1000 is the end of the stream. Dropping it sends
/// one, after everything that was written, and waits briefly for the browser's.
pub struct WebSocket {
    reading: Mutex<ReadState>,
    link: Arc<Link>,
}

/// The connection that both directions share.
struct Link {
    inner: Box<dyn Transport>,
    /// Held while a frame is sent; has the bytes of a frame.
    writer: Mutex<Vec<u8>>,
    /// A close frame was sent, or the browser's was answered: nothing follows.
    is_closed: AtomicBool,
    /// The connection failed, so the browser is not waited for.
    has_failed: AtomicBool,
}

struct ReadState {
    frames: tungstenite::WebSocket<Side>,
    /// The rest of a message that was not read yet.
    rest: tungstenite::Bytes,
    has_ended: bool,
    /// The browser broke the rules: what follows is not read as frames.
    is_broken: bool,
}

/// The transport as tungstenite sees it, which reads frames and answers to control frames.
struct Side {
    link: Arc<Link>,
    /// Of the whole read, however slowly the bytes of a message come.
    deadline: Option<Instant>,
}

impl Read for Side {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // mutant(web-drip, 180 s): `left(self.deadline)?` => `Some(TICK * 10)`
        self.link.inner.read(bytes, left(self.deadline)?)
    }
}

impl Write for Side {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A thread that is in a write, perhaps this one, is not waited for: the answer goes out
        // with a later read.
        let Ok(_writer) = self.link.writer.try_lock() else {
            // no mutant: an answer to a ping waits for a write to end
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if !self.link.is_closed.load(Ordering::SeqCst) {
            self.link.inner.write(bytes, left(self.deadline)?)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WebSocket {
    /// Over a connection whose handshake is over; `part` came behind it.
    pub(super) fn new(inner: Box<dyn Transport>, part: Vec<u8>) -> Self {
        let link = Arc::new(Link {
            inner,
            writer: Mutex::default(),
            is_closed: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        });
        let side = Side { link: Arc::clone(&link), deadline: None };
        // mutant(web-long-message, 90 s): `.max_message_size(Some(LONGEST))` =>
        //     `.max_message_size(if $ON { None } else { Some(LONGEST) })`
        // mutant(web-long-frame, 90 s): `.max_frame_size(Some(LONGEST))` => `.max_frame_size(if $ON
        //     { None } else { Some(LONGEST) })`
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(ANSWERS)
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let frames =
            tungstenite::WebSocket::from_partially_read(side, part, Role::Server, Some(config));
        Self {
            reading: Mutex::new(ReadState {
                frames,
                rest: tungstenite::Bytes::new(),
                has_ended: false,
                is_broken: false,
            }),
            link,
        }
    }

    /// Ends the connection with a code of [`code`](super::code) and a reason for the user. A later
    /// call, and dropping it, sends no other one.
    pub fn close(&self, code: u16, reason: &str) {
        self.send_close(lock(&self.link.writer), code, reason);
    }

    fn send_close(&self, mut writer: MutexGuard<'_, Vec<u8>>, code: u16, reason: &str) {
        let mut end = reason.len().min(REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let frame =
            Frame::close(Some(CloseFrame { code: code.into(), reason: reason[..end].into() }));
        if self.link.is_closed.swap(true, Ordering::SeqCst) {
            return;
        }
        writer.clear();
        // If the browser is gone, this fails harmlessly.
        let formed = frame.format(&mut *writer);
        if formed.is_err() || self.link.inner.write(&writer, Some(LINGER)).is_err() {
            self.link.has_failed.store(true, Ordering::SeqCst);
        }
    }

    /// Reads until the browser's close frame, or until it is not waited for any more: if unread
    /// bytes were left when the connection is closed, the browser could lose this side's close
    /// frame.
    fn linger(&self) {
        let is_broken = lock(&self.reading).is_broken;
        let start = Instant::now();
        let mut sent = start;
        let mut bytes = vec![0; BUFFER];
        while sent.elapsed() < LINGER && start.elapsed() < LONG_LINGER {
            let read = match is_broken {
                true => self.link.inner.read(&mut bytes, Some(TICK)),
                false => self.read(&mut bytes, Some(TICK)),
            };
            match read {
                Ok(0) => return,
                Err(error) if !is_timeout(error.kind()) => return,
                _ => {}
            }
            if !self.link.inner.is_idle() {
                sent = Instant::now();
            }
        }
    }

    /// The error of a browser that breaks the rules. It is told, unless a thread is in a write:
    /// perhaps this one, so that is not waited for.
    fn refuse(&self, reading: &mut ReadState, code: u16, what: &'static str) -> io::Error {
        reading.is_broken = true;
        // mutant(web-writer, 90 s): `self.link.writer.try_lock()` =>
        //     `self.link.writer.lock().map_err(Into::into)`
        match self.link.writer.try_lock() {
            Ok(writer) => self.send_close(writer, code, what),
            Err(_) => {
                self.link.is_closed.store(true, Ordering::SeqCst);
                self.link.has_failed.store(true, Ordering::SeqCst);
            }
        }
        // no mutant: the error of what was refused
        io::Error::other(Error::PeerMisbehaved(what))
    }

    fn failed(&self, reading: &mut ReadState, error: WsError) -> io::Error {
        match error {
            WsError::Io(error) => error,
            WsError::Capacity(_) => self.refuse(
                reading,
                code::TOO_LONG,
                "a WebSocket message is longer than 1 MiB: send shorter ones",
            ),
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                io::ErrorKind::UnexpectedEof.into()
            }
            WsError::ConnectionClosed | WsError::AlreadyClosed => {
                io::ErrorKind::ConnectionAborted.into()
            }
            _ => self.refuse(reading, code::PROTOCOL, "it does not speak WebSocket (RFC 6455)"),
        }
    }

    /// The next message into `rest`, or the end.
    fn next(&self, reading: &mut ReadState) -> io::Result<()> {
        match reading.frames.read() {
            Ok(Message::Binary(bytes)) => reading.rest = bytes,
            // mutant(web-text, 90 s): `(Message::Text(_))` => `$0 if !$ON`
            Ok(Message::Text(_)) => {
                return Err(self.refuse(
                    reading,
                    code::TEXT,
                    "a WebSocket message is text: the byte stream has binary messages only",
                ));
            }
            Ok(Message::Close(frame)) => {
                // The answer, unless this side has closed before.
                let _ = reading.frames.flush();
                self.link.is_closed.store(true, Ordering::SeqCst);
                let code = frame.map_or(code::END, |frame| frame.code.into());
                // A page that is left closes with 1001, or with nothing.
                // mutant(web-left): false
                if code != code::END {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                reading.has_ended = true;
            }
            Ok(_) => {}
            // no mutant: the error of tungstenite
            Err(error) => return Err(self.failed(reading, error)),
        }
        Ok(())
    }
}

impl Transport for WebSocket {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.write_while(bytes, timeout, &|| false)
    }

    fn write_while(
        &self,
        bytes: &[u8],
        timeout: Option<Duration>,
        alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut writer = lock(&self.link.writer);
        for piece in bytes.chunks(PIECE) {
            // Asked anew, as the browser may close meanwhile.
            if self.link.is_closed.load(Ordering::SeqCst) {
                // no mutant: a browser does not read what comes behind a close frame; the other
                //     direction ends the connection
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let header =
                FrameHeader { opcode: OpCode::Data(Data::Binary), ..FrameHeader::default() };
            writer.clear();
            let formed = header.format(piece.len() as u64, &mut *writer);
            formed.map_err(io::Error::other)?;
            writer.extend_from_slice(piece);
            let sent = self.link.inner.write_while(&writer, timeout, alive);
            // A part of a frame may be sent.
            sent.inspect_err(|_| {
                self.link.is_closed.store(true, Ordering::SeqCst);
                self.link.has_failed.store(true, Ordering::SeqCst);
            })?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.link.inner.is_idle()
    }

    fn queue_bound(&self) -> usize {
        self.link.inner.queue_bound()
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let mut reading = lock(&self.reading);
        let reading = &mut *reading;
        // Pings, empty messages and parts of a message are no progress.
        reading.frames.get_mut().deadline = deadline_after(timeout);
        while reading.rest.is_empty() {
            if reading.has_ended {
                return Ok(0);
            }
            if reading.is_broken {
                // no mutant: nothing is read after an error
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let next = self.next(reading);
            if let Err(error) = &next {
                let passes = is_timeout(error.kind()) || error.kind() == io::ErrorKind::Interrupted;
                let failed = !passes && !reading.is_broken;
                self.link.has_failed.fetch_or(failed, Ordering::SeqCst);
            }
            next?;
        }
        let count = bytes.len().min(reading.rest.len());
        let taken = reading.rest.split_to(count);
        bytes[..count].copy_from_slice(&taken);
        Ok(count)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.link.inner.round_trip()
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        if thread::panicking() || self.link.has_failed.load(Ordering::SeqCst) {
            return;
        }
        self.close(code::END, "");
        if !lock(&self.reading).has_ended {
            self.linger();
        }
    }
}
