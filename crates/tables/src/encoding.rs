//! Text encodings and byte-order marks: conversion of the bytes of a file for the CSV reader.

use std::fmt;
use std::io::{self, Cursor, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult};

use crate::error::{Problem, Result, refuse};

/// An encoding of text, by one of the labels of the WHATWG Encoding Standard: `utf-8`, `utf-16le`,
/// `windows-1252` (which `latin1` and `iso-8859-1` are labels of), `shift_jis`, .., or by the
/// number of a code page of East Asia, such as `cp932`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl Encoding {
    /// The name of the encoding.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(label: &str) -> Result<Self, UnknownEncoding> {
        let label = match label.to_ascii_lowercase().as_str() {
            "cp932" | "ms932" => "shift_jis",
            "cp936" => "gbk",
            "cp949" => "euc-kr",
            "cp950" => "big5",
            _ => label,
        };
        encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())
            .map(Self)
            .ok_or(UnknownEncoding)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The label of an encoding is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a known encoding; examples are utf-8, utf-16le, windows-1252, iso-8859-15 and shift_jis"
)]
pub struct UnknownEncoding;

/// The reader of a file as bytes that begin with the header, and whether a byte-order mark was
/// removed.
///
/// Without `declared` the bytes are those of the file; with it they are its text in UTF-8, and
/// bytes that are invalid in that encoding end the stream with an error for which [`is_malformed`]
/// is true.
pub(crate) fn decode(
    mut file: Box<dyn Read + Send>,
    declared: Option<Encoding>,
) -> Result<(Box<dyn Read + Send>, bool)> {
    let mut start = Vec::with_capacity(4);
    file.by_ref().take(4).read_to_end(&mut start).map_err(Problem::Read)?;
    check_mark(&start, declared)?;
    let file: Box<dyn Read + Send> = Box::new(Cursor::new(start).chain(file));
    let text = match declared {
        Some(encoding) => Box::new(Transcoder::new(file, encoding)),
        None => file,
    };
    without_mark(text)
}

/// Whether `error` came from a decoder that met bytes that are invalid in its encoding.
pub(crate) fn is_malformed(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<MalformedText>())
}

/// Byte-order marks, their encodings, and whether these can be read. UTF-32 comes first: the mark
/// of UTF-32LE begins with that of UTF-16LE.
const MARKS: [(&[u8], &str, bool); 5] = [
    (b"\xff\xfe\0\0", "utf-32le", false),
    (b"\0\0\xfe\xff", "utf-32be", false),
    (b"\xff\xfe", "utf-16le", true),
    (b"\xfe\xff", "utf-16be", true),
    (b"\xef\xbb\xbf", "utf-8", true),
];

/// Whether these bytes would be recognized as a byte-order mark at the start of a file.
pub(crate) fn is_marked(start: &[u8]) -> bool {
    MARKS.iter().any(|(mark, ..)| start.starts_with(mark))
}

/// Refuses a byte-order mark that contradicts the declared encoding, or that requires a
/// declaration.
fn check_mark(start: &[u8], declared: Option<Encoding>) -> Result<()> {
    let Some(&(_, label, readable)) = MARKS.iter().find(|(mark, ..)| start.starts_with(mark))
    else {
        return Ok(());
    };
    match declared {
        Some(encoding) if encoding.name().eq_ignore_ascii_case(label) => Ok(()),
        Some(encoding) if readable => {
            let what = format_args!("is {label} by its byte-order mark, not {}", encoding.name());
            Err(refuse(what, format_args!("--encoding {label}")))
        }
        None if label == "utf-8" => Ok(()),
        _ => {
            let what = format_args!("is {label}, by its byte-order mark");
            Err(match readable {
                true => refuse(what, format_args!("--encoding {label}")),
                false => refuse(what, "convert it to UTF-8"),
            })
        }
    }
}

/// Removes byte-order marks, by now those of UTF-8, from the front. It removes all of them: the CSV
/// reader would remove a second one.
fn without_mark(mut text: Box<dyn Read + Send>) -> Result<(Box<dyn Read + Send>, bool)> {
    let mut marked = false;
    loop {
        let mut start = Vec::with_capacity(3);
        match text.by_ref().take(3).read_to_end(&mut start) {
            Ok(_) if start == b"\xef\xbb\xbf" => marked = true,
            // A stream with malformed text repeats the error, so that a reader that knows the row
            // gets it.
            Err(error) if !is_malformed(&error) => return Err(Problem::Read(error)),
            _ => return Ok((Box::new(Cursor::new(start).chain(text)), marked)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("malformed text")]
struct MalformedText;

/// Converts text of another encoding to UTF-8 while it is read.
///
/// Text before malformed bytes is delivered before the error, so that a row counter behind it knows
/// the row.
struct Transcoder {
    inner: Box<dyn Read + Send>,
    decoder: Decoder,
    input: Vec<u8>,
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    undelivered: std::ops::Range<usize>,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Reading,
    AtEnd,
    Done,
    Malformed,
}

impl Transcoder {
    const BUFFER: usize = 1 << 16;

    fn new(inner: Box<dyn Read + Send>, encoding: Encoding) -> Self {
        Self {
            inner,
            decoder: encoding.0.new_decoder_without_bom_handling(),
            input: vec![0; Self::BUFFER],
            unread: 0..0,
            output: vec![0; Self::BUFFER],
            undelivered: 0..0,
            state: State::Reading,
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        if self.unread.is_empty() && self.state == State::Reading {
            let n = self.inner.read(&mut self.input)?;
            self.unread = 0..n;
            if n == 0 {
                self.state = State::AtEnd;
            }
        }
        let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
            &self.input[self.unread.clone()],
            &mut self.output,
            self.state == State::AtEnd,
        );
        self.unread.start += read;
        self.undelivered = 0..written;
        match result {
            DecoderResult::InputEmpty if self.state == State::AtEnd => self.state = State::Done,
            DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => self.state = State::Malformed,
        }
        Ok(())
    }
}

impl Read for Transcoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.undelivered.is_empty() {
            match self.state {
                State::Done => return Ok(0),
                State::Malformed => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, MalformedText));
                }
                State::Reading | State::AtEnd => self.refill()?,
            }
        }
        let n = out.len().min(self.undelivered.len());
        let start = self.undelivered.start;
        out[..n].copy_from_slice(&self.output[start..start + n]);
        self.undelivered.start += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], label: Option<&str>) -> Result<(Vec<u8>, bool)> {
        let label = label.map(|label| label.parse().unwrap());
        let (mut reader, marked) = decode(Box::new(Cursor::new(bytes.to_vec())), label)?;
        let mut text = Vec::new();
        reader.read_to_end(&mut text).map_err(Problem::Read)?;
        Ok((text, marked))
    }

    #[test]
    fn every_length_around_the_buffer_is_transcoded_whole() {
        for n in [0, 1, 2, 1 << 15, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_003] {
            let text: String = "aé漢🦀".chars().cycle().take(n).collect();
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let (back, marked) = decoded(&wide, Some("utf-16le")).unwrap();
            assert!(back == text.as_bytes() && !marked, "{n}");
        }
    }

    #[test]
    fn labels_are_known_or_not() {
        assert_eq!("latin1".parse::<Encoding>().unwrap().name(), "windows-1252");
        assert_eq!("utf-32".parse::<Encoding>(), Err(UnknownEncoding));
        assert_eq!("iso-2022-kr".parse::<Encoding>(), Err(UnknownEncoding));
    }
}
