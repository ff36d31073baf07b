//! Detection of problems that the CSV library ignores: quotes that never close, text after a
//! closing quote, blank lines.
//!
//! A state machine with the same states as the library's own inspects the bytes on their way to the
//! library.

use std::io::{self, Read};

use crate::encoding::is_malformed;
use crate::error::{NAME_ENCODING, Problem, place, refuse};

/// The maximum length of a row in bytes. Rows are held in memory one at a time, and a quote that
/// never closes makes the rest of the file one row.
const LONGEST_ROW: u64 = 64 << 20;

/// Passes on the bytes of a text file up to its first problem.
///
/// A problem ends the stream with an error at its position: every row before it has been passed on.
/// [`take_problem`](Self::take_problem) returns the problem.
pub(super) struct Scan {
    inner: Box<dyn Read + Send>,
    encoding: &'static str,
    classes: [Class; 256],
    state: State,
    /// Whether the last byte was a carriage return that ended a line, so that a following line feed
    /// belongs to it.
    after_return: bool,
    /// Number of finished rows, the header included: the number of the current row.
    row: u64,
    blank_lines: u64,
    /// The current line, counted from 1, and the lines in which the current row and the last quote
    /// began.
    line: u64,
    row_line: u64,
    quote_line: u64,
    row_bytes: u64,
    problem: Option<Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a row.
    RowStart,
    /// Before the first byte of a further field.
    FieldStart,
    /// In a field that does not begin with a quote. Quotes in it are ordinary bytes.
    Bare,
    Quoted,
    /// After a quote in a quoted field: the end of the field, or the first of two quotes that
    /// denote one.
    QuoteInQuoted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Quote,
    Delimiter,
    Feed,
    Return,
}

impl Scan {
    /// `has_quotes`: a field may stand in quotes; `encoding` is the name of the encoding `inner`
    /// decodes, and `lines` the number of lines before it, for messages.
    pub(super) fn new(
        inner: Box<dyn Read + Send>,
        delimiter: u8,
        has_quotes: bool,
        encoding: &'static str,
        lines: u64,
    ) -> Self {
        let mut classes = [Class::Other; 256];
        if has_quotes {
            classes[usize::from(b'"')] = Class::Quote;
        }
        classes[usize::from(delimiter)] = Class::Delimiter;
        classes[usize::from(b'\n')] = Class::Feed;
        classes[usize::from(b'\r')] = Class::Return;
        Self {
            inner,
            encoding,
            classes,
            state: State::RowStart,
            after_return: false,
            row: 0,
            blank_lines: 0,
            line: lines + 1,
            row_line: lines + 1,
            quote_line: lines + 1,
            row_bytes: 0,
            problem: None,
        }
    }

    /// The problem that ended the stream, if it was not the end of the file.
    pub(super) fn take_problem(&mut self) -> Option<Problem> {
        self.problem.take()
    }

    pub(super) fn blank_lines(&self) -> u64 {
        self.blank_lines
    }

    /// Inspects `bytes`, the next ones of the file; returns the number of bytes before a problem.
    fn look_at(&mut self, bytes: &[u8]) -> usize {
        let mut row_start = 0;
        let mut i = 0;
        while i < bytes.len() {
            // Most bytes are inside a field and change no state.
            let skipped = match self.state {
                State::Bare => {
                    self.skip(&bytes[i..], |class| matches!(class, Class::Other | Class::Quote))
                }
                State::Quoted => {
                    self.skip(&bytes[i..], |class| matches!(class, Class::Other | Class::Delimiter))
                }
                _ => 0,
            };
            i += skipped;
            let Some(&byte) = bytes.get(i) else { break };
            let class = self.classes[usize::from(byte)];
            let after_return = std::mem::take(&mut self.after_return);
            match (self.state, class) {
                (State::Quoted, Class::Quote) => self.state = State::QuoteInQuoted,
                (State::Quoted, Class::Feed) => self.line += 1,
                (State::Quoted, _) => {}
                (State::QuoteInQuoted, Class::Quote) => self.state = State::Quoted,
                (State::QuoteInQuoted, Class::Other) => {
                    let (place, line) = (place(self.row), self.line);
                    let what =
                        format!("there is text after a closing quote in {place}, on line {line}");
                    self.problem = Some(refuse(
                        what,
                        "a field with quotes in it is quoted as a whole, and its quotes are \
                         written twice; if quotes are ordinary characters in this file, --quote none",
                    ));
                    return i;
                }
                // The second half of a CRLF.
                (State::RowStart, Class::Feed) if after_return => row_start = i + 1,
                (state, Class::Feed | Class::Return) => {
                    if state == State::RowStart {
                        self.blank_lines += 1;
                    } else {
                        self.row += 1;
                    }
                    self.state = State::RowStart;
                    self.after_return = class == Class::Return;
                    self.line += 1;
                    self.row_line = self.line;
                    self.row_bytes = 0;
                    row_start = i + 1;
                }
                (_, Class::Delimiter) => self.state = State::FieldStart,
                (State::RowStart | State::FieldStart, Class::Quote) => {
                    self.state = State::Quoted;
                    self.quote_line = self.line;
                }
                (_, Class::Quote | Class::Other) => self.state = State::Bare,
            }
            i += 1;
        }
        self.row_bytes += (bytes.len() - row_start) as u64;
        if self.row_bytes > LONGEST_ROW {
            let (place, line, limit) = (place(self.row), self.row_line, LONGEST_ROW >> 20);
            let what = format!("{place} is longer than {limit} MiB; it begins on line {line}");
            self.problem = Some(refuse(what, QUOTE_TWICE));
        }
        bytes.len()
    }

    fn skip(&self, bytes: &[u8], passes: impl Fn(Class) -> bool) -> usize {
        let end = bytes.iter().position(|&byte| !passes(self.classes[usize::from(byte)]));
        end.unwrap_or(bytes.len())
    }

    fn fail(&mut self, problem: Problem) -> io::Error {
        self.problem = Some(problem);
        io::ErrorKind::InvalidData.into()
    }
}

/// The remedy for a quoted field without an end.
const QUOTE_TWICE: &str = "inside a quoted field, write a quote twice; if quotes are ordinary characters in this \
     file, --quote none";

impl Read for Scan {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.problem.is_some() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let n = match self.inner.read(buffer) {
            Err(error) if is_malformed(&error) => {
                let what = format!("{} is not valid {}", place(self.row), self.encoding);
                return Err(self.fail(refuse(what, NAME_ENCODING)));
            }
            other => other?,
        };
        if n == 0 && self.state == State::Quoted && !buffer.is_empty() {
            let (place, line) = (place(self.row), self.quote_line);
            let what =
                format!("a quoted field that starts in {place}, on line {line}, is never closed");
            return Err(self.fail(refuse(what, QUOTE_TWICE)));
        }
        match self.look_at(&buffer[..n]) {
            0 if n > 0 => Err(io::ErrorKind::InvalidData.into()),
            before => Ok(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// The rows and blank lines of a text, which passes as it is, in pieces of every size.
    fn scanned(text: &'static str) -> (u64, u64) {
        let run = |size: usize| {
            let mut scan = Scan::new(Box::new(Cursor::new(text)), b',', true, "", 0);
            let mut passed = Vec::new();
            io::copy(&mut io::BufReader::with_capacity(size, &mut scan), &mut passed).unwrap();
            assert_eq!(passed, text.as_bytes());
            (scan.row, scan.blank_lines)
        };
        let whole = run(1 << 10);
        for size in 1..=8 {
            assert_eq!(run(size), whole, "{text:?} in pieces of {size}");
        }
        whole
    }

    #[test]
    fn rows_and_blank_lines_are_counted() {
        for (text, rows, blank) in [
            ("", 0, 0),
            ("\n", 0, 1),
            ("a,b\n1,2\n", 2, 0),
            ("a,b\r\n1,2\r\n", 2, 0),
            ("a,b\r1,2\r", 2, 0),
            ("\r\n\r\na\n\n\n\"\"\r\n\r\n", 2, 5),
            ("a\n\"x\r\n\n,\"\"\"\n", 2, 0),
            ("a\nx\"y\"z,\"\"\n", 2, 0),
            ("\"\"\"\",\"\"\n", 1, 0),
        ] {
            assert_eq!(scanned(text), (rows, blank), "{text:?}");
        }
    }

    #[test]
    fn a_row_does_not_fill_the_memory() {
        let endless = Box::new(Cursor::new("a\nb\n\"").chain(io::repeat(b'x')));
        let mut scan = Scan::new(endless, b',', true, "", 0);
        let error = io::copy(&mut scan, &mut io::sink());
        assert!(error.is_err());
        let problem = scan.take_problem().map(|problem| problem.to_string());
        let expected = "row 2 is longer than 64 MiB; it begins on line 3";
        assert_eq!(problem.as_deref(), Some(expected));
    }
}
