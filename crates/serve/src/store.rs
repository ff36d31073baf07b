//! The folder of a server: its key and filter, which appear together or not at all.
//!
//! | file | content |
//! |---|---|
//! | `current` | the name of the folder below that is served; replaced by renaming |
//! | `set-V/key` | the key in hexadecimal: the only secret |
//! | `set-V/filter` | the filter of version V, which clients fetch |
//! | `set-V/about.json` | which table it was prepared from |
//! | `spent` | what clients have spent |
//! | `serving`, `preparing` | locked by the process that serves, and by one that prepares; the first has the keys that `spent` must have |
//! | `.new-X` | a folder that is being prepared |

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as IoRead, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use volery_matching::served::TableSummary;
use volery_os::fs::{Lock, remove_dir_all, remove_file, rename, sync_all};
use volery_psi::served::{Key, Label, Server};
use volery_run::failure::{Failure, Result, Status};
use volery_run::identity::read_private;
use volery_run::output::{SingleFile, keep_name};
use volery_run::randomness::hex;
use volery_run::reporter::now;
use zeroize::{Zeroize as _, Zeroizing};

const CURRENT: &str = "current";
const KEY: &str = "key";
const FILTER: &str = "filter";
const ABOUT: &str = "about.json";
/// The beginning of the name of a folder that is being prepared.
const NEW: &str = ".new-";
/// The beginning of the name of a finished one.
const SET: &str = "set-";

/// Hexadecimal digits of a version in a name.
const DIGITS: usize = 32;

/// The version of `about.json`.
const FORMAT: u32 = 1;

/// The table that a filter was prepared from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceTable {
    format: u32,
    /// BLAKE3 of the keys of all rows in their order, in hexadecimal.
    pub(crate) digest: String,
    /// Types and normalisers of the keys.
    pub(crate) keys: String,
    rows: u64,
    prepared: String,
}

impl SourceTable {
    pub(crate) fn new(read: &TableSummary, digest: String) -> Self {
        Self {
            format: FORMAT,
            digest,
            keys: read.keys.clone(),
            rows: read.counts.rows,
            prepared: now(),
        }
    }
}

/// The folder.
pub(crate) struct Store {
    path: PathBuf,
}

/// A key with its filter.
pub(crate) struct Generation {
    name: String,
    pub(crate) label: Label,
    pub(crate) about: SourceTable,
    pub(crate) server: Server,
    /// Open, so that it can be sent after another one has taken its place.
    file: File,
}

impl Generation {
    /// The beginning of the public key, which names it.
    pub(crate) fn key_name(&self) -> String {
        hex(self.label.public())
    }

    pub(crate) fn version(&self) -> String {
        hex(self.label.version())
    }

    /// The file of the filter, read from its begin.
    pub(crate) fn filter(&self) -> impl IoRead {
        FileReader { file: &self.file, place: 0 }
    }
}

/// A file that several threads read, each at its own place.
struct FileReader<'a> {
    file: &'a File,
    place: u64,
}

impl IoRead for FileReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.place)?;
        self.place += count as u64;
        Ok(count)
    }
}

/// A folder that is being prepared; removed unless it is committed.
pub(crate) struct NewGeneration {
    folder: TempDir,
}

impl NewGeneration {
    /// An empty file for what does not fit into memory, which the system removes.
    pub(crate) fn scratch(&self) -> io::Result<File> {
        tempfile::tempfile_in(self.folder.path())
    }

    pub(crate) fn filter(&self) -> Result<File> {
        let path = self.folder.path().join(FILTER);
        private(&path).map_err(|error| Failure::file(&path, error))
    }
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

impl Store {
    /// Opens the folder, and makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let refused = |what: &dyn std::fmt::Display| {
            let what = format_args!("{}: {what}", path.display());
            Failure::usage("--store", what)
        };
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refused(&error));
            }
            // Also of one that is there: the start that made it may have failed here.
            // mutant(world-store-parent): `keep_name(path)?` => `if $ON {} else { $0 }`
            _ => keep_name(path)?,
        }
        let data = fs::metadata(path).map_err(|error| refused(&error))?;
        if !data.is_dir() {
            return Err(refused(&"it is no folder"));
        }
        let own = rustix::process::geteuid().as_raw();
        // mutant(serve-store): false
        if data.mode() & 0o022 != 0 || data.uid() != own {
            let (what, command) = match data.uid() == own {
                true => (
                    format!("its mode is {:03o}: other users can change it", data.mode() & 0o777),
                    "chmod 700",
                ),
                false => (
                    format!("it belongs to another user ({})", data.uid()),
                    "as root: chown -R USER",
                ),
            };
            return Err(refused(&what).with_hint(format_args!("{command} {}", path.display())));
        }
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For the only process that serves from this folder.
    pub(crate) fn lock_served(&self) -> Result<Lock> {
        self.lock("serving", "another process serves from this folder")
    }

    /// For the only process that prepares in this folder.
    pub(crate) fn lock_preparing(&self) -> Result<Lock> {
        self.lock("preparing", "another process prepares in this folder")
    }

    fn lock(&self, name: &str, taken: &str) -> Result<Lock> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path);
        let file = file.map_err(|error| Failure::file(&path, error))?;
        match Lock::try_new(file) {
            Ok(lock) => Ok(lock),
            Err((_, TryLockError::WouldBlock)) => {
                let what = format_args!("--store: {}: {taken}", self.path.display());
                Err(Failure::new(Status::Other, what)
                    .with_hint("end it first; its log says which it is"))
            }
            Err((_, TryLockError::Error(error))) => Err(Failure::file(&path, error)),
        }
    }

    /// The name of the current folder, if there is one.
    fn current(&self) -> Result<Option<String>> {
        let path = self.path.join(CURRENT);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let name = text.trim();
                let digits = name.strip_prefix(SET).unwrap_or_default();
                let is_name =
                    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                match is_name {
                    true => Ok(Some(name.to_owned())),
                    false => Err(damaged(&path, "it names no folder of the store")),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::file(&path, error)),
        }
    }

    /// The table that is prepared, if one is.
    pub(crate) fn about(&self) -> Result<Option<SourceTable>> {
        self.current()?.map(|name| self.about_of(&name)).transpose()
    }

    fn about_of(&self, name: &str) -> Result<SourceTable> {
        let path = self.path.join(name).join(ABOUT);
        let text = fs::read_to_string(&path).map_err(|error| damaged(&path, error))?;
        let about = serde_json::from_str::<SourceTable>(&text);
        let about = about.map_err(|error| damaged(&path, error))?;
        match about.format {
            FORMAT => Ok(about),
            _ => Err(damaged(&path, "it was made by another version of volery")),
        }
    }

    pub(crate) fn is_current(&self, generation: &Generation) -> Result<bool> {
        Ok(self.current()?.is_some_and(|name| name == generation.name))
    }

    /// Reads and checks what is served.
    pub(crate) fn load(&self) -> Result<Generation> {
        let nothing = || damaged(&self.path, "nothing is prepared");
        let name = self.current()?.ok_or_else(nothing)?;
        self.load_of(&name).or_else(|failure| {
            // Another process may have put another one in its place.
            match self.current()?.filter(|other| *other != name) {
                Some(other) => self.load_of(&other),
                None => Err(failure),
            }
        })
    }

    fn load_of(&self, name: &str) -> Result<Generation> {
        let about = self.about_of(name)?;
        let folder = self.path.join(name);
        let path = folder.join(FILTER);
        let file = File::open(&path).map_err(|error| damaged(&path, error))?;
        let label = Label::of_file(&mut FileReader { file: &file, place: 0 }, u64::MAX);
        let label = label.map_err(|error| damaged(&path, error))?;
        let path = folder.join(KEY);
        let text = read_private(&path, false).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => damaged(&path, error).with_hint(format_args!(
                "chmod 600 {}, owned by the user that serves; if others could read it, make a new key with --rotate",
                path.display()
            )),
            _ => damaged(&path, error),
        })?;
        let key = key_of(text.trim()).ok_or_else(|| damaged(&path, "it holds no key"))?;
        let server = Server::new(key, &label);
        let server = server.map_err(|_| damaged(&path, "it is not the key of the filter"))?;
        if name != name_of(&label) {
            return Err(damaged(&folder, "it holds another filter than its name says"));
        }
        Ok(Generation { name: name.to_owned(), label, about, server, file })
    }

    /// A folder to prepare in. The process has the lock, so that all others are left over.
    pub(crate) fn begin(&self) -> Result<NewGeneration> {
        let failed = |error| Failure::file(&self.path, error);
        self.tidy(self.current()?.as_deref()).map_err(failed)?;
        let folder = tempfile::Builder::new()
            .prefix(NEW)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.path);
        let folder = folder.map_err(failed)?;
        Ok(NewGeneration { folder })
    }

    /// Puts the new folder in the place of the one that is served.
    pub(crate) fn commit(
        &self,
        new: NewGeneration,
        filter: File,
        key: &Key,
        label: &Label,
        about: &SourceTable,
    ) -> Result<()> {
        let folder = new.folder.path().to_owned();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            let written = private(&path).and_then(|mut file| {
                file.write_all(bytes)?;
                sync_all(&file)
            });
            written.map_err(|error| Failure::file(&path, error))
        };
        let failed = |error| Failure::file(&self.path, error);
        sync_all(&filter).map_err(failed)?;
        let mut secret = key.to_bytes();
        let mut digits = Zeroizing::new(Vec::with_capacity(65));
        for byte in secret.iter() {
            let digit = |four: u8| char::from_digit(u32::from(four), 16).expect("below 16") as u8;
            digits.extend([digit(byte >> 4), digit(byte & 15)]);
        }
        secret.zeroize();
        digits.push(b'\n');
        write(KEY, &digits)?;
        let about = serde_json::to_string_pretty(about).expect("strings and numbers serialise");
        write(ABOUT, about.as_bytes())?;
        let name = name_of(label);
        let sync = |path: &Path| File::open(path).and_then(|folder| sync_all(&folder));
        sync(&folder).map_err(failed)?;
        rename(&folder, self.path.join(&name)).map_err(failed)?;
        // Its name is gone, so that nothing is left to remove.
        let _ = new.folder.keep();
        // Its new name is on the disk before another file says it.
        // mutant(world-store-name): drop
        sync(&self.path).map_err(failed)?;
        SingleFile::prepare("--store", &self.path.join(CURRENT))?
            .commit(format!("{name}\n").as_bytes())?;
        // The new one is in place, whatever the result of this.
        let _ = self.tidy(Some(&name));
        Ok(())
    }

    /// Removes folders that are not served, the keys in them first.
    fn tidy(&self, current: Option<&str>) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_ours = name.starts_with(NEW) || name.starts_with(SET);
            if is_ours && Some(&*name) != current && entry.file_type()?.is_dir() {
                let _ = remove_file(entry.path().join(KEY));
                remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

fn name_of(label: &Label) -> String {
    format!("{SET}{}", &hex(label.version())[..DIGITS])
}

fn key_of(digits: &str) -> Option<Key> {
    let mut bytes = Zeroizing::new([0; 32]);
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Key::from_bytes(&bytes)
}

fn damaged(path: &Path, what: impl std::fmt::Display) -> Failure {
    let what = format_args!("--store: {}: {what}", path.display());
    Failure::new(Status::Other, what).with_hint(
        "restore the folder from a copy, or prepare the table anew with --rebuild in another one",
    )
}
