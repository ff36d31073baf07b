//! Browsers: WebSocket connections, and the files of a page.
//!
//! A page cannot open a TCP connection. It opens a WebSocket connection to a [`Bridge`], which
//! passes the bytes on to a native party, or to a [`service`](crate::service), which answers
//! itself.
//!
//! ```text
//! browser                                         bridge                        native party
//!   TLS 1.3, off the loopback interface     <--->
//!   GET, subprotocols volery.1, token...     ---->
//!                                           <----  101, volery.1
//!   binary messages: a byte stream          <--->                        <---> TCP on loopback, or
//!                                                                              TLS as in `tls`
//! ```
//!
//! * **The byte stream** is what a native peer writes to and reads from its TCP connection,
//!   heartbeats included. A message has at most 1 MiB ([`LONGEST`]); where one ends means nothing.
//!   Close code 1000 is the end of the stream, in both directions. [`code`] has the others.
//! * **Who may connect**: pages of the server itself, and of the [`Origin`]s named; with the
//!   [`Token`] of a client that is known, or without one where none is required.
//! * **Files**: a GET request without an upgrade gets a [file](Files) of the page. Each answer has
//!   the headers by which a browser isolates the page from others.
//! * **Bounds**: heads of requests, messages, bytes queued in each direction, connections, the time
//!   for the handshake, the time without a byte.
//!
//! Security: a browser has no identity of its own. Between browser and bridge the bytes are
//! protected by TLS with a certificate that browsers accept, and behind the bridge not at all, or
//! by another TLS connection: the bridge reads and can change them, so it belongs to the native
//! party. A token is a bearer secret: the bridge sees it, and stores its fingerprint.
//!
//! Cost: about 500 bytes each way for the handshake, and 2 to 14 bytes a message.

mod bridge;
mod certificate;
mod files;
mod http;
mod origin;
mod server;
mod socket;
mod token;

use std::sync::Arc;

pub use bridge::{Bridge, Event, Limits, Target};
pub use certificate::Certificate;
pub use files::Files;
pub use origin::{BadOrigin, Origin};
pub(crate) use server::{Visitor, shake};
pub use socket::{LONGEST, WebSocket};
pub use token::{BadToken, Token};

use crate::tls::Fingerprint;

/// The subprotocol that a page offers: the version of the byte stream's framing.
pub const PROTOCOL: &str = "volery.1";

/// The beginning of a second subprotocol; the text of a token follows, in base64url.
pub const TOKEN: &str = "token.";

/// Close codes of a WebSocket connection: those below 4000 are of RFC 6455, the others are for the
/// user, with the reason in words.
pub mod code {
    /// The end of the stream.
    pub const END: u16 = 1000;
    /// The other side broke the rules of WebSocket.
    pub const PROTOCOL: u16 = 1002;
    /// The other side sent a text message.
    pub const TEXT: u16 = 1003;
    /// The other side sent a message that is too long.
    pub const TOO_LONG: u16 = 1009;
    /// The native party is not there.
    pub const NOT_THERE: u16 = 4000;
    /// A token is required, or this one is not known.
    pub const TOKEN: u16 = 4001;
    /// There are too many connections.
    pub const FULL: u16 = 4002;
    /// Nothing came for too long.
    pub const SILENT: u16 = 4003;
    /// The connection to the native party broke.
    pub const BROKEN: u16 = 4004;
}

/// Says whether a browser is served, by the fingerprint of its token, or without one.
pub type Admission = Arc<dyn Fn(Option<Fingerprint>) -> bool + Send + Sync>;

/// Who is let in, and what is shown.
#[derive(Clone)]
pub struct Settings {
    /// For TLS; without it the address must be on the loopback interface.
    pub certificate: Option<Certificate>,
    /// Whose pages may connect, besides those of the server itself.
    pub origins: Vec<Origin>,
    /// The files of the page, if they are here.
    pub files: Option<Files>,
    /// Whether a browser is served.
    pub admits: Admission,
}
