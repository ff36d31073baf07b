//! The pages of a Parquet file, looked at before the library takes memory for what they claim.
//!
//! A page says how many bytes it has when decompressed, a dictionary how many values, and a list of
//! lengths how many strings; the library sets aside as much as they say, and memory that is not
//! there ends the process. So a page is refused here that claims what its bytes cannot hold: its
//! size before it is decompressed, the rest before it is decoded.

mod delta;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::thrift;
use crate::varint::{varint, zigzag};

/// The most bytes a decompressed page may have, and the longest value of fixed length; a page that
/// is large in the file may have [`RATIO`] times what it has there.
const LARGE: u64 = 64 << 20;

/// How much compression is believed of a page above [`LARGE`].
const RATIO: u64 = 1024;

/// The most values a page of a nested column may have. One row can have all of them.
const NESTED: u32 = 1 << 24;

/// The most strings a dictionary may have: in memory each takes 40 bytes, in the page an empty one
/// takes 4.
const ENTRIES: u32 = 1 << 22;

/// The bytes that are looked at for a page header: at first, enough for almost all; then the most
/// that it may have, with long values in its statistics.
const HEADER: [u64; 2] = [4 << 10, 16 << 20];

/// All rows of a file, page by page.
#[derive(Clone)]
pub(super) struct Pages {
    source: Arc<Source>,
    pub(super) metadata: Arc<ParquetMetaData>,
}

impl Pages {
    /// The pages of `file`, which has `length` bytes.
    pub(super) fn new(file: File, length: u64, metadata: Arc<ParquetMetaData>) -> Self {
        let source = Arc::new(Source { file, length });
        Self { source, metadata }
    }

    /// The number of rows of a row group, by the footer. A negative number is none: the rows that
    /// are then missing are noticed when they are counted.
    pub(super) fn rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// The most bytes that a single value of one of the columns `leaves` has in a row group which
    /// takes fewer in the file: an entry of a dictionary, which each row can name, or a value of
    /// fixed length, which is set aside even where it is null.
    pub(super) fn longest_value(&self, group: usize, leaves: &[usize]) -> Result<u64> {
        let mut longest = 0;
        for &leaf in leaves {
            let column = self.metadata.file_metadata().schema_descr().column(leaf);
            if column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY {
                longest = longest.max(u64::try_from(column.type_length()).unwrap_or(0));
                if longest > LARGE {
                    return Err(refused("values of a fixed length above the limit"));
                }
            }
            let mut pages = self.open(group, leaf)?;
            if pages.peek_next_page()?.is_some_and(|page| page.is_dict)
                && let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()?
                && column.physical_type() == Type::BYTE_ARRAY
            {
                longest = longest.max(longest_entry(&buf));
            }
        }
        Ok(longest)
    }

    /// The pages of the column `leaf` in a row group.
    pub(super) fn open(&self, group: usize, leaf: usize) -> Result<Box<dyn PageReader>> {
        let chunk = self
            .metadata
            .row_group(group)
            .columns()
            .get(leaf)
            .ok_or_else(|| refused("a row group that lacks a column"))?;
        let rows = self.rows(group);
        Ok(Box::new(CheckedPages {
            inner: SerializedPageReader::new(Arc::clone(&self.source), chunk, rows, None)?,
            column: chunk.column_descr_ptr(),
        }))
    }
}

/// Pages that are not handed on unless they can hold what they claim.
struct CheckedPages {
    inner: SerializedPageReader<Source>,
    column: ColumnDescPtr,
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

impl CheckedPages {
    fn check(&self, page: &Page) -> Result<()> {
        let nested = self.column.max_rep_level() > 0;
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let (kind, length) = (self.column.physical_type(), self.column.type_length());
                check_dictionary(kind, length, *num_values, buf.len() as u64)
            }
            _ if nested && page.num_values() > NESTED => {
                Err(refused("a page that claims more values than the limit"))
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                if !is_list_of_lengths(*encoding) {
                    return Ok(());
                }
                let levels = [
                    (self.column.max_rep_level(), rep_level_encoding),
                    (self.column.max_def_level(), def_level_encoding),
                ];
                let values = levels.into_iter().try_fold(&buf[..], |rest, (most, encoding)| {
                    behind_levels(rest, most, *encoding, *num_values)
                });
                check_lengths(values, *encoding, *num_values)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let values = usize::try_from(levels).ok().and_then(|n| buf.get(n..));
                match is_list_of_lengths(*encoding) {
                    true => check_lengths(values, *encoding, *num_values),
                    false => Ok(()),
                }
            }
        }
    }
}

/// A dictionary of `count` values of this type in so many bytes; `length` is that of values of
/// fixed length.
fn check_dictionary(kind: Type, length: i32, count: u32, bytes: u64) -> Result<()> {
    // The fewest bytes of a value; at least one, for there are no dictionaries of nothing.
    let (least, is_string) = match kind {
        Type::BOOLEAN => (1, false),
        Type::INT32 | Type::FLOAT => (4, false),
        Type::INT64 | Type::DOUBLE => (8, false),
        Type::INT96 => (12, false),
        Type::BYTE_ARRAY => (4, true),
        Type::FIXED_LEN_BYTE_ARRAY => (u64::try_from(length).map_or(1, |n| n.max(1)), true),
    };
    if u64::from(count) * least > bytes {
        return Err(refused("a dictionary that claims more values than it has"));
    }
    if is_string && count > ENTRIES {
        return Err(refused("a dictionary with more entries than the limit"));
    }
    Ok(())
}

/// Whether values begin with a list of lengths that is decoded as a whole.
fn is_list_of_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

fn check_lengths(values: Option<&[u8]>, encoding: Encoding, count: u32) -> Result<()> {
    let lists = if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 };
    let whole = values.is_some_and(|values| {
        (0..lists).try_fold(values, |rest, _| delta::behind(rest, count.into())).is_some()
    });
    match whole {
        true => Ok(()),
        false => Err(refused("a page that claims more strings than it has")),
    }
}

#[expect(deprecated, reason = "old files have BIT_PACKED levels")]
/// The bytes behind the levels of a page of the first version, if there are levels; none if they
/// are cut short.
fn behind_levels(bytes: &[u8], most: i16, encoding: Encoding, count: u32) -> Option<&[u8]> {
    if most == 0 {
        return Some(bytes);
    }
    if encoding == Encoding::BIT_PACKED {
        let bits = u64::from(16 - most.leading_zeros()) * u64::from(count);
        return bytes.get(usize::try_from(bits.div_ceil(8)).ok()?..);
    }
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)
}

/// The longest of strings that each have their length before them; what is cut short is nothing.
fn longest_entry(mut bytes: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(u64::from(length).min(rest.len() as u64));
        bytes = rest.get(length as usize..).unwrap_or_default();
    }
    longest
}

/// The file, which is as long as it is.
struct Source {
    file: File,
    length: u64,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Source {
    type T = Header;

    fn get_read(&self, start: u64) -> Result<Header> {
        Ok(Header { file: self.file.get_read(start)?, header: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(refused("a page that is longer than the file"));
        }
        self.file.get_bytes(start, length)
    }
}

/// Where a page begins: sequential reading is of page headers only. A header is looked at as a
/// whole before its first bytes are handed on; what follows it never is.
struct Header {
    file: BufReader<File>,
    header: Option<Cursor<Vec<u8>>>,
}

impl Read for Header {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let header = match &mut self.header {
            Some(header) => header,
            none => none.insert(Cursor::new(header(&mut self.file)?)),
        };
        header.read(out)
    }
}

/// The page header with which the bytes begin.
fn header(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut header = Vec::new();
    for most in HEADER {
        let more = most - header.len() as u64;
        from.take(more).read_to_end(&mut header)?;
        if let Some(length) = thrift::page_header(&header) {
            header.truncate(length);
            check_sizes(&header).map_err(wrong)?;
            return Ok(header);
        }
    }
    Err(wrong("a page header that is malformed, or above the limit"))
}

/// A page header begins with its type and both of its sizes, required fields of the numbers 1, 2
/// and 3: with the bytes that say "the next field, a 32-bit integer" before each.
fn check_sizes(mut header: &[u8]) -> std::result::Result<(), &'static str> {
    let mut field = || {
        let (&0x15, rest) = header.split_first()? else {
            return None;
        };
        header = rest;
        zigzag(varint(&mut header)?)
    };
    let (Some(_), Some(size), Some(stored)) = (field(), field(), field()) else {
        return Err("a page header of unknown form");
    };
    let (Ok(size), Ok(stored)) = (u64::try_from(size), u64::try_from(stored)) else {
        return Err("a page header with a negative size");
    };
    if size > LARGE && size / RATIO > stored {
        return Err("a page that claims far more bytes than it has");
    }
    Ok(())
}

fn refused(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_believed_as_far_as_bytes_go() {
        // Type 0, then the two sizes in zigzag.
        let header = |size: u64, stored: u64| {
            let mut bytes = vec![0x15, 0];
            for number in [size, stored] {
                bytes.push(0x15);
                let mut rest = 2 * number;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
            }
            bytes
        };
        for (size, stored) in [(0, 0), (1, 1), (LARGE, 0), (LARGE + RATIO, LARGE / RATIO + 1)] {
            assert_eq!(check_sizes(&header(size, stored)), Ok(()), "{size}");
        }
        for (size, stored) in
            [(LARGE + RATIO, LARGE / RATIO), (i32::MAX as u64, 1000), (u64::MAX >> 2, 0)]
        {
            assert!(check_sizes(&header(size, stored)).is_err(), "{size}");
        }
        let good = header(300, 200);
        for end in 0..good.len() {
            assert!(check_sizes(&good[..end]).is_err(), "{end}");
        }
        // Another field first; a size below zero.
        assert!(check_sizes(&[0x25, 0, 0x15, 2, 0x15, 2]).is_err());
        assert!(check_sizes(&[0x15, 0, 0x15, 3, 0x15, 2]).is_err());
    }

    /// A page header whose statistics have a value of so many bytes.
    fn with_value(bytes: u32) -> Vec<u8> {
        let length = [0, 7, 14, 21, 28].map(|shift| (bytes >> shift) as u8 | 0x80);
        let mut header = vec![0x15, 0, 0x15, 8, 0x15, 8];
        header.extend([0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18]);
        header.extend(length);
        header.push(0);
        header.resize(header.len() + bytes as usize, b'm');
        header.extend([0; 3]);
        header
    }

    #[test]
    fn a_header_is_read_as_a_whole_and_no_further() {
        for bytes in [1, 4 << 10, 1 << 20] {
            let whole = with_value(bytes);
            let page = [&whole[..], b"page"].concat();
            assert_eq!(header(&mut &page[..]).expect("it is whole"), whole);
            assert!(header(&mut &whole[..whole.len() - 1]).is_err());
        }
        assert!(header(&mut &with_value(16 << 20)[..]).is_err());
    }

    #[test]
    fn a_dictionary_has_the_values_it_claims() {
        let is_good =
            |kind, length, count, bytes| check_dictionary(kind, length, count, bytes).is_ok();
        for (kind, length, least) in [
            (Type::BOOLEAN, -1, 1),
            (Type::INT32, -1, 4),
            (Type::INT64, -1, 8),
            (Type::INT96, -1, 12),
            (Type::BYTE_ARRAY, -1, 4),
            (Type::FIXED_LEN_BYTE_ARRAY, 7, 7),
            (Type::FIXED_LEN_BYTE_ARRAY, 0, 1),
        ] {
            assert!(is_good(kind, length, 50, 50 * least), "{kind}");
            assert!(!is_good(kind, length, 50, 50 * least - 1), "{kind}");
            let is_string = kind == Type::BYTE_ARRAY || kind == Type::FIXED_LEN_BYTE_ARRAY;
            assert!(is_good(kind, length, ENTRIES, u64::MAX), "{kind}");
            assert_eq!(is_good(kind, length, ENTRIES + 1, u64::MAX), !is_string, "{kind}");
        }
    }

    #[test]
    fn the_longest_entry_of_a_dictionary() {
        assert_eq!(longest_entry(b""), 0);
        assert_eq!(longest_entry(b"\x02\0\0\0ab\0\0\0\0\x03\0\0\0abc\x01\0\0\0a"), 3);
        // Cut short: what is there counts.
        assert_eq!(longest_entry(b"\x01\0\0\0a\xff\xff\xff\xffabcd"), 4);
        assert_eq!(longest_entry(b"\x01\0\0"), 0);
    }

    #[test]
    #[expect(deprecated, reason = "old files have BIT_PACKED levels")]
    fn values_are_found_behind_levels() {
        let page = b"\x02\0\0\0ab123";
        assert_eq!(behind_levels(page, 0, Encoding::RLE, 3), Some(&page[..]));
        assert_eq!(behind_levels(page, 1, Encoding::RLE, 3), Some(&b"123"[..]));
        assert_eq!(behind_levels(&page[..5], 1, Encoding::RLE, 3), None);
        let packed = |most, count| behind_levels(page, most, Encoding::BIT_PACKED, count);
        assert_eq!(packed(1, 8), Some(&page[1..]));
        assert_eq!(packed(2, 5), Some(&page[2..]));
        assert_eq!(packed(1, 1000), None);
    }
}
