//! Numbers of variable length, as in the footers and encodings of Parquet.

/// A number in 7 bits a byte, the lowest first.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The signed number that an unsigned number encodes.
#[cfg(any(test, feature = "columnar"))]
pub(crate) fn zigzag(number: u64) -> Option<i64> {
    let half = i64::try_from(number >> 1).ok()?;
    Some(half ^ -i64::from(number as u8 & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_an_end() {
        let read = |mut bytes: &[u8]| varint(&mut bytes);
        assert_eq!(read(b"\x80\x01"), Some(128));
        assert_eq!(read(b"\x80"), None);
        assert_eq!(read(&[0xff; 11]), None);
        assert_eq!([0, 1, 2, 3].map(zigzag), [0, -1, 1, -2].map(Some));
        assert_eq!(zigzag(u64::MAX), Some(i64::MIN));
    }
}
