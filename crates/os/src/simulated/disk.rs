//! The files below a folder, and what a loss of power leaves of them.
//!
//! The files are real. A disk notes, at each sync, what is certain from then on: the content of a
//! file, the names of a folder. A loss of power takes back some of what is not certain: a changed
//! name keeps its old or its new meaning, names that exchanged a file keep it together, a file
//! keeps the old content, the new one, or the new one with its end cut off.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The number of a file or folder on the disk.
type Number = u64;

/// Content that is certain to be on the disk.
#[derive(Clone, Debug)]
enum Content {
    File { bytes: Vec<u8>, mode: u32 },
    Folder { names: BTreeMap<OsString, Number>, mode: u32 },
}

#[derive(Debug)]
pub(super) struct Disk {
    known: BTreeMap<Number, Content>,
    /// The files of which a sync failed.
    dropped: BTreeSet<Number>,
}

impl Disk {
    /// A disk with an empty folder.
    pub(super) fn new(folder: &Path) -> Self {
        let mut disk = Self { known: BTreeMap::new(), dropped: BTreeSet::new() };
        if let Ok(folder) = File::open(folder) {
            let _ = disk.sync(&folder);
        }
        disk
    }

    /// Notes the present content of an opened file or folder.
    pub(super) fn sync(&mut self, file: &File) -> io::Result<()> {
        let data = file.metadata()?;
        if self.dropped.contains(&data.ino()) {
            return Ok(());
        }
        // The file may be open for writing only, and its name may have changed.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let content = read(Path::new(&path), &data)?;
        self.known.insert(data.ino(), content);
        Ok(())
    }

    /// A sync of a file failed: the system drops what it could not write, and a later sync does not
    /// tell of it.
    pub(super) fn fail(&mut self, file: &File) -> io::Result<()> {
        let data = file.metadata()?;
        if !data.is_dir() {
            self.dropped.insert(data.ino());
        }
        Ok(())
    }

    /// Takes back what no sync put on the disk, by `seed`.
    pub(super) fn lose_power(&mut self, folder: &Path, seed: u64) {
        let lost = Loss { disk: self, seed, places: Cell::new(0) };
        lost.folder(folder).expect("the folder of a machine can be changed");
        self.settle(folder);
    }

    /// Notes that all files of now are on the disk, and no others.
    pub(super) fn settle(&mut self, folder: &Path) {
        self.known.clear();
        self.dropped.clear();
        self.note_all(folder).expect("the folder of a machine can be read");
    }

    fn note_all(&mut self, path: &Path) -> io::Result<()> {
        let data = fs::symlink_metadata(path)?;
        self.known.insert(data.ino(), read(path, &data)?);
        if data.is_dir() {
            for entry in fs::read_dir(path)? {
                self.note_all(&entry?.path())?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path, data: &fs::Metadata) -> io::Result<Content> {
    let mode = data.permissions().mode();
    if !data.is_dir() {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        return Ok(Content::File { bytes, mode });
    }
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // One that goes just now is of no program of this world.
        if let Ok(data) = fs::symlink_metadata(entry.path()) {
            names.insert(entry.file_name(), data.ino());
        }
    }
    Ok(Content::Folder { names, mode })
}

/// A loss of power.
struct Loss<'a> {
    disk: &'a Disk,
    seed: u64,
    /// A thousand for each folder and file so far.
    places: Cell<u64>,
}

impl Loss<'_> {
    /// A coin for a file or name.
    fn coin(&self, of: u64, sides: u64) -> u64 {
        let mut value = (self.seed ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(of);
        value = (value ^ (value >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 29)) % sides
    }

    fn folder(&self, path: &Path) -> io::Result<()> {
        let data = fs::symlink_metadata(path)?;
        let Content::Folder { names: new, .. } = read(path, &data)? else { return Ok(()) };
        let none = BTreeMap::new();
        let old = match self.disk.known.get(&data.ino()) {
            Some(Content::Folder { names, .. }) => names,
            _ => &none,
        };
        let all: BTreeSet<&OsString> = old.keys().chain(new.keys()).collect();
        let changed = |name: &&&OsString| old.get(**name) != new.get(**name);
        let changed: Vec<&OsString> = all.iter().filter(changed).copied().collect();
        self.places.set(self.places.get() + 1000);
        let folder = self.places.get();
        for &name in &all {
            let place = path.join(name);
            let (before, now) = (old.get(name), new.get(name));
            let of = || folder + self.group(name, &changed, old, &new);
            if before != now && self.coin(of(), 2) == 0 {
                if now.is_some() {
                    match fs::symlink_metadata(&place)?.is_dir() {
                        true => fs::remove_dir_all(&place)?,
                        false => fs::remove_file(&place)?,
                    }
                }
                if let Some(before) = before {
                    self.restore(&place, *before)?;
                }
            } else if let Some(now) = now {
                match fs::symlink_metadata(&place)?.is_dir() {
                    true => self.folder(&place)?,
                    false => self.file(&place, *now)?,
                }
            }
        }
        Ok(())
    }

    /// A number that names share if a file went from one to the other: the place of the first one.
    fn group(
        &self,
        name: &OsString,
        changed: &[&OsString],
        old: &BTreeMap<OsString, Number>,
        new: &BTreeMap<OsString, Number>,
    ) -> u64 {
        let files = |name: &OsString| [old.get(name), new.get(name)].map(|file| file.copied());
        let mut group: BTreeSet<&OsString> = BTreeSet::from([name]);
        loop {
            let taken: BTreeSet<Number> =
                group.iter().flat_map(|name| files(name)).flatten().collect();
            let joins =
                |name: &&&OsString| files(name).iter().flatten().any(|it| taken.contains(it));
            let before = group.len();
            group.extend(changed.iter().filter(joins));
            if group.len() == before {
                // The numbers of files and parts of names differ between two runs, their order
                // does not.
                return changed.iter().position(|name| group.contains(name)).unwrap_or(0) as u64;
            }
        }
    }

    /// Cuts a file whose name stays down to what is left of it.
    fn file(&self, path: &Path, number: Number) -> io::Result<()> {
        let new = fs::read(path)?;
        let none = Vec::new();
        let old = match self.disk.known.get(&number) {
            Some(Content::File { bytes, .. }) => bytes,
            _ => &none,
        };
        if new == *old {
            return Ok(());
        }
        self.places.set(self.places.get() + 1000);
        let of = self.places.get();
        let kept = match self.coin(of, 3) {
            _ if self.disk.dropped.contains(&number) => old.clone(),
            0 => old.clone(),
            1 => return Ok(()),
            _ => {
                // What was certain before stays, where nothing was written over it.
                let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
                let cut = same + self.coin(of + 1, (new.len() - same + 1) as u64) as usize;
                new[..cut].to_vec()
            }
        };
        // The file keeps its number and its mode.
        fs::write(path, kept)
    }

    /// Puts a file or folder back that has no name any more.
    fn restore(&self, path: &Path, number: Number) -> io::Result<()> {
        let mode = match self.disk.known.get(&number) {
            Some(Content::File { bytes, mode }) => {
                fs::write(path, bytes)?;
                *mode
            }
            Some(Content::Folder { names, mode }) => {
                fs::create_dir(path)?;
                for (name, number) in names {
                    self.restore(&path.join(name), *number)?;
                }
                *mode
            }
            None => {
                // Its name was certain, its content never was.
                return fs::write(path, []);
            }
        };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
}
