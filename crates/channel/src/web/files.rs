//! The files of a page.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::pipe::CHUNK;

/// Types by extension. Another file is only downloaded.
const TYPES: [(&str, &str); 14] = [
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webmanifest", "application/manifest+json"),
    ("woff2", "font/woff2"),
];

/// A folder whose files are for everyone who connects.
#[derive(Clone, Debug)]
pub struct Files(PathBuf);

pub(super) struct ServedFile {
    file: File,
    pub(super) length: u64,
    pub(super) kind: &'static str,
}

impl Files {
    /// The files in `folder` and the folders below it, but those whose names begin with a dot.
    ///
    /// # Errors
    /// If it is not there, or no folder.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        // mutant(web-folder): false
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(folder))
    }

    /// The file at a path of a request; `None` if there is none that may be read.
    pub(super) fn find(&self, target: &str) -> Option<ServedFile> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let path = path.strip_prefix('/')?;
        let mut place = self.0.clone();
        let mut parts: Vec<_> = path.split('/').collect();
        if parts.last() == Some(&"") {
            parts.pop();
            parts.push("index.html");
        }
        for part in parts {
            // No `..`, no hidden file, no drive, no escaped character.
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            // mutant(web-hidden): `part.starts_with('.')` => `false`
            if part.is_empty() || part.starts_with('.') || !part.chars().all(allowed) {
                return None;
            }
            place.push(part);
        }
        // A link may lead elsewhere in the folder, and not out of it.
        let place = place.canonicalize().ok()?;
        // mutant(web-outside): false
        if !place.starts_with(&self.0) {
            return None;
        }
        let about = place.metadata().ok()?;
        // mutant(web-regular): false
        if !about.is_file() {
            return None;
        }
        let file = File::open(&place).ok()?;
        let extension = place.extension().and_then(|one| one.to_str());
        let kind = TYPES.iter().find(|(name, _)| Some(*name) == extension);
        Some(ServedFile {
            file,
            length: about.len(),
            kind: kind.map_or("application/octet-stream", |(_, kind)| kind),
        })
    }
}

impl ServedFile {
    /// Gives the bytes of the file to `send`, piece by piece; exactly as many as it had.
    pub(super) fn send(mut self, mut send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK / 4];
        let mut left = self.length;
        while left > 0 {
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let count = self.file.read(&mut buffer[..most])?;
            if count == 0 {
                // no mutant: a file that has become shorter meanwhile: the browser sees it by the
                //     length
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            send(&buffer[..count])?;
            left -= count as u64;
        }
        Ok(())
    }
}
