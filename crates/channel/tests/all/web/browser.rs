//! The browser's side, for tests: what a page does with the same library.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use data_encoding::BASE64URL_NOPAD;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::error::Error;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};
use tungstenite::{Message, WebSocket};

pub(crate) type Browser = WebSocket<TcpStream>;

/// The headers with which a browser describes itself.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) origin: Option<&'a str>,
    pub(crate) protocols: Option<&'a str>,
}

/// A request for a WebSocket connection. A page without an origin given is the server's own.
pub(crate) fn request(
    address: SocketAddr,
    page: Page<'_>,
) -> tungstenite::handshake::client::Request {
    let mut request = format!("ws://{address}/").into_client_request().unwrap();
    let own = format!("http://{address}");
    let headers = request.headers_mut();
    let text = |text: &str| HeaderValue::from_str(text).unwrap();
    headers.insert("Origin", text(page.origin.unwrap_or(&own)));
    if let Some(protocols) = page.protocols {
        headers.insert("Sec-WebSocket-Protocol", text(protocols));
    }
    request
}

pub(crate) fn connect(address: SocketAddr, page: Page<'_>) -> Result<Browser, Error> {
    let stream = TcpStream::connect(address).unwrap();
    let connected = tungstenite::client(request(address, page), stream);
    let (browser, answer) = connected.map_err(|error| match error {
        tungstenite::HandshakeError::Failure(error) => error,
        tungstenite::HandshakeError::Interrupted(_) => unreachable!("the socket blocks"),
    })?;
    assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], "volery.1");
    Ok(browser)
}

/// The page of the server, with a token or without one.
pub(crate) fn own(address: SocketAddr, token: Option<&str>) -> Browser {
    let protocols = match token {
        Some(token) => format!("volery.1, token.{}", BASE64URL_NOPAD.encode(token.as_bytes())),
        None => "volery.1".to_owned(),
    };
    let page = Page { origin: None, protocols: Some(&protocols) };
    connect(address, page).unwrap()
}

/// A frame as a browser sends it.
pub(crate) fn frame(bytes: &[u8], opcode: OpCode, is_final: bool) -> Vec<u8> {
    let header =
        FrameHeader { is_final, opcode, mask: Some([1, 2, 3, 4]), ..FrameHeader::default() };
    let frame = Frame::from_payload(header, bytes.to_vec().into());
    let mut out = Vec::new();
    frame.format(&mut out).unwrap();
    out
}

/// Reads until the close frame; the bytes before it.
pub(crate) fn until_close(browser: &mut Browser) -> (Vec<u8>, Option<CloseFrame>) {
    let mut bytes = Vec::new();
    loop {
        match browser.read() {
            Ok(Message::Binary(more)) => bytes.extend_from_slice(&more),
            Ok(Message::Close(frame)) => {
                let _ = browser.flush();
                return (bytes, frame);
            }
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A local port behind which a program that speaks TCP reaches a server as a page does, once.
/// Returns the port, and what ends with the connection: the close frame of the server.
#[allow(dead_code, reason = "this file is shared by the tests of two crates")]
pub(crate) fn through(
    address: SocketAddr,
    token: Option<String>,
) -> (u16, JoinHandle<Option<CloseFrame>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let passing = thread::spawn(move || {
        let local = Arc::new(listener.accept().unwrap().0);
        let mut browser = own(address, token.as_deref());
        let mut writer = browser.get_ref().try_clone().unwrap();
        let from = Arc::clone(&local);
        thread::spawn(move || {
            let mut bytes = vec![0; 100_000];
            while let Ok(count @ 1..) = (&*from).read(&mut bytes) {
                let frame = frame(&bytes[..count], OpCode::Data(Data::Binary), true);
                if writer.write_all(&frame).is_err() {
                    return;
                }
            }
            let mut close = Frame::close(Some(CloseFrame { code: 1000.into(), reason: "".into() }));
            close.header_mut().mask = Some([1, 2, 3, 4]);
            let mut out = Vec::new();
            close.format(&mut out).unwrap();
            let _ = writer.write_all(&out);
        });
        loop {
            match browser.read() {
                Ok(Message::Binary(bytes)) => {
                    if (&*local).write_all(&bytes).is_err() {
                        return None;
                    }
                }
                Ok(Message::Close(frame)) => {
                    let _ = browser.flush();
                    let _ = local.shutdown(std::net::Shutdown::Write);
                    return frame;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    });
    (port, passing)
}
