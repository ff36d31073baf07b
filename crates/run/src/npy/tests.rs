//! Files that are no arrays of ring elements.

use std::io::{Seek as _, SeekFrom};

use volery_field::Z64;

use super::*;

fn complaint(bytes: &[u8]) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    Reader::new(file, bytes.len() as u64).err().unwrap().to_string()
}

#[test]
fn files_that_are_not_ours_are_refused() {
    let (mut good, mut file) = (Vec::new(), tempfile::tempfile().unwrap());
    let mut writer = Writer::new(file.try_clone().unwrap(), 3).unwrap();
    writer.write(&[Z64::ONE; 3]).unwrap();
    writer.finish().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut good).unwrap();
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
