//! Finds the ends of lists of integers in Parquet's encoding `DELTA_BINARY_PACKED`.
//!
//! ```text
//! list  = block size | miniblocks a block | number of values | first value | block*  as varints
//! block = least difference | bit width of each miniblock (1 byte) | miniblock*
//! ```

use crate::varint::varint;

/// The bytes after a list of at most `most` values; none if it claims more, or is malformed.
///
/// The last miniblocks may be truncated: a decoder that needs their bytes reports that.
pub(super) fn behind(mut bytes: &[u8], most: u64) -> Option<&[u8]> {
    let rest = &mut bytes;
    let (block, miniblocks) = (varint(rest)?, varint(rest)?);
    let count = varint(rest)?;
    varint(rest)?;
    let each = block.checked_div(miniblocks)?;
    if count > most || each == 0 || each % 32 != 0 {
        return None;
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(rest)?;
        let (widths, packed) = rest.split_at_checked(usize::try_from(miniblocks).ok()?)?;
        *rest = packed;
        for &width in widths {
            if left == 0 {
                break;
            }
            let length = (each / 8).checked_mul(width.into())?;
            let length = usize::try_from(length).ok()?;
            *rest = rest.get(length..).unwrap_or_default();
            left = left.saturating_sub(each);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_list_is_found() {
        // 128 values a block of 4 miniblocks; first value 5; the differences have widths 0, 1, 0
        // and 0.
        let block = [&[0x80, 1, 4, 100, 10, 2, 0, 1, 0, 0][..], &[0xaa; 4], b"rest"].concat();
        assert_eq!(behind(&block, 100), Some(&b"rest"[..]));
        assert_eq!(behind(&block, 99), None);
        for end in 0..10 {
            assert_eq!(behind(&block[..end], 100), None, "{end}");
        }
        // No value, and one: no block.
        assert_eq!(behind(b"\x80\x01\x04\0\0rest", 0), Some(&b"rest"[..]));
        assert_eq!(behind(b"\x80\x01\x04\x01\x0arest", 1), Some(&b"rest"[..]));
        // Blocks of no values, and of all of them.
        assert_eq!(behind(b"\0\x04\x02\0\0\0\0\0\0", 9), None);
        assert_eq!(behind(b"\x80\x01\0\x02\0\0\0\0\0\0", 9), None);
    }
}
