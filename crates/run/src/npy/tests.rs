//! Round trips of streams of ring elements, and files that are not such arrays.

use std::io::{Seek as _, SeekFrom};

use volery_field::{F2, Fp61, Gf128, Z64};
use volery_primitives::Block;

use super::*;

fn written<R: Ring>(elements: &[R], slice: usize) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = Writer::new(file.try_clone().unwrap(), elements.len() as u64).unwrap();
    for part in elements.chunks(slice) {
        writer.write(part).unwrap();
    }
    writer.finish().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

fn reader(file: File) -> io::Result<Reader> {
    let length = file.metadata()?.len();
    Reader::new(file, length)
}

#[test]
fn bits_take_a_byte_each() {
    let mut bytes = Vec::new();
    let bits = [1, 0, 0, 1, 1, 0, 0, 0, 0, 1].map(|bit| F2::new(bit == 1));
    written(&bits, 3).read_to_end(&mut bytes).unwrap();
    let (header, data) = bytes.split_at(bytes.len() - 10);
    assert_eq!(data, [1, 0, 0, 1, 1, 0, 0, 0, 0, 1]);
    let header = String::from_utf8_lossy(header);
    assert!(header.contains("'descr': '|u1'"), "{header}");
    assert!(header.contains("(10,)"), "{header}");

    *bytes.last_mut().unwrap() = 2;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut reader = reader(file).unwrap();
    assert_eq!(reader.header().form, Form::Bit);
    let error = reader.read(&mut [F2::ZERO; 10]).unwrap_err();
    assert!(error.to_string().contains("element 9 is neither 0 nor 1"), "{error}");
}

#[test]
fn the_bytes_are_those_numpy_writes() {
    let elements = [Gf128::from_block(Block::from_words(0x0102, 0x0304))];
    let mut bytes = Vec::new();
    written(&elements, 1).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() % 16, 0);
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
    let header = String::from_utf8_lossy(&bytes[10..bytes.len() - 16]).into_owned();
    assert!(header.contains("'descr': '<u8'"), "{header}");
    assert!(header.contains("'fortran_order': False"), "{header}");
    assert!(header.contains("(1, 2"), "{header}");
    assert_eq!(bytes[bytes.len() - 16..], [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]);
}

fn complaint(bytes: &[u8]) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    reader(file).err().unwrap().to_string()
}

#[test]
fn files_that_are_not_ours_are_refused() {
    let mut good = Vec::new();
    written(&[Z64::ONE; 3], 3).read_to_end(&mut good).unwrap();
    assert!(complaint(b"").contains("too short"));
    assert!(complaint(b"a,b,c\n1,2,3\n").contains("not an .npy file"));
    assert!(complaint(&good[..good.len() - 1]).contains("bytes, but its header"));
    assert!(complaint(&good[..40]).contains("inside its header"));
    let mut other = good.clone();
    other[6] = 9;
    assert!(complaint(&other).contains("version"));
    let text = String::from_utf8_lossy(&good[10..good.len() - 24]).into_owned();
    let replace = |from: &str, to: &str| {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_eq!(changed.len(), text.len());
        [&good[..10], changed.as_bytes(), &good[good.len() - 24..]].concat()
    };
    assert!(complaint(&replace("<u8", "<f8")).contains("dtype"));
    assert!(complaint(&replace("(3", "(9")).contains("bytes, but its header"));
}

#[test]
fn a_value_out_of_range_is_named() {
    let mut elements = vec![Z64::ZERO; 11];
    elements[7] = -Z64::ONE; // 2^64 - 1 is no residue modulo 2^61 - 1
    let mut reader = reader(written(&elements, 4)).unwrap();
    let mut out = vec![Fp61::ZERO; 5];
    reader.read(&mut out).unwrap();
    let error = reader.read(&mut out).unwrap_err();
    assert!(error.to_string().contains("element 7 is not"), "{error}");
}
