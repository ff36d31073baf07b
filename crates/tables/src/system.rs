//! The functions that operating systems name differently.

use std::fs::{File, Metadata};
use std::io;

/// Reads at an offset, whatever else reads the same file.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_at(file, buffer, offset)
    }
    #[cfg(windows)]
    {
        std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
    }
    #[cfg(not(any(unix, windows)))]
    {
        // One thread at a time: the offset is the file's own.
        use std::io::{Read as _, Seek as _};
        static READING: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _reading = READING.lock();
        let mut file = file;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read(buffer)
    }
}

/// The numbers of the device and of the file on it, on systems that tell them.
pub(crate) fn number(metadata: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}
