//! The folder of a run whose parts workers do. Crate `volery_matching` has its layout.
//!
//! **Workers on other machines.** Each gets a folder `worker-W` and sees no other folder but
//! `matched`, which is within it: a copy of `run.json`, its own `part-R-B` and its ticket. It
//! writes `begun-`, `found-` and `complete-` there. They are moved back when a driver begins.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use volery_matching::steps::{
    Folder, MATCHED, Part, RECORD, is_ours, make_private_folder, sync_folder,
};
use volery_matching::{Error, Result};
use volery_os::fs::{Lock, remove_dir, rename};

use crate::manifest::Manifest;

/// The folder of a run of several workers, which another process has locked.
pub(crate) fn shared(path: &Path, manifest: &Manifest) -> Result<Folder> {
    let file = path.join(RECORD);
    let own = File::open(&file).map_err(Error::work(&file))?;
    // Until this worker ends no other run begins here. Some file systems have no locks.
    let shared = Folder::at(path, Lock::try_shared(own).ok());
    match shared.read_record(Manifest::from_json)? {
        Some(here) if here.id() == manifest.id() => Ok(shared),
        _ => Err(Error::Manifest("is not that of the work folder".to_owned())),
    }
}

/// Gives each worker of a run a folder of its own, and returns these folders.
pub(crate) fn hand_out(work: &Folder, manifest: &Manifest) -> Result<Vec<PathBuf>> {
    let workers = manifest.terms().map_or(0, |terms| terms.workers);
    let folders = (0..workers).map(|worker| work.file(&format!("worker-{worker}")));
    let folders: Vec<_> = folders.collect();
    let make = |path: &Path| make_private_folder(path).map_err(Error::work(path));
    let matches = manifest.rules() > 1;
    if matches {
        make(&work.file(MATCHED))?;
    }
    for folder in &folders {
        make(folder)?;
        if matches {
            // The place of the folder of all workers, for engines that put one into another.
            make(&folder.join(MATCHED))?;
        }
        Folder::at(folder, None).put(RECORD, manifest.to_json().as_bytes())?;
    }
    move_files(work.path(), |name| {
        let mut words = name.split('-');
        let kind = words.next().unwrap_or_default();
        let number = words.nth(1).and_then(|number| number.parse::<u32>().ok())?;
        let worker = match kind {
            // mutant(work-own-shards): `number % workers` => `0`
            "part" | "begun" => number % workers,
            "found" if !name.starts_with("found-rows-") => number % workers,
            "complete" => number,
            _ => return None,
        };
        folders.get(worker as usize).filter(|_| is_ours(name))
    })?;
    for folder in &folders {
        sync_folder(folder).map_err(Error::work(folder))?;
    }
    Ok(folders)
}

/// Moves the results of workers that had a folder of their own back into the folder of a run, if
/// there are such: a driver does that before it reads its table.
///
/// # Errors
/// Errors of the folder; if a worker still runs in its own.
pub fn take_back(path: &Path) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    // No other driver begins meanwhile.
    let _locked = Folder::kept(path)?;
    for folder in of_workers(path)? {
        let manifest = folder.join(RECORD);
        let manifest = File::open(&manifest).map_err(Error::work(&manifest))?;
        let locked = Lock::try_new(manifest);
        // mutant(work-taken-back): `if let` => `if !$ON && let`
        if let Err((_, TryLockError::WouldBlock)) = locked {
            return Err(Error::OtherRun {
                path: folder,
                what: "workers that were started earlier are still running in it",
            });
        }
        move_files(&folder, |name| {
            let is_result = name != RECORD && !name.starts_with("ticket-");
            (is_result && is_ours(name)).then_some(path)
        })?;
        sync_folder(path).map_err(Error::work(path))?;
        Folder::at(&folder, None).clear()?;
        remove_dir(&folder).map_err(Error::work(&folder))?;
    }
    Ok(())
}

/// Refuses to begin while workers have a folder of their own: what they have begun would not count.
/// The folder of the run is locked.
pub(crate) fn check_taken_back(work: &Folder) -> Result<()> {
    match of_workers(work.path())?.pop() {
        None => Ok(()),
        Some(path) => {
            Err(Error::OtherRun { path, what: "what its worker did was not taken back from it" })
        }
    }
}

/// The folders of workers within that of a run.
fn of_workers(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::work(path))? {
        let folder = entry.map_err(Error::work(path))?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix("worker-").map(str::parse::<u32>);
        // A folder without a manifest is somebody's.
        if matches!(number, Some(Ok(_))) && folder.join(RECORD).exists() {
            found.push(folder);
        }
    }
    Ok(found)
}

/// Moves files to the folders that `to` names.
fn move_files<P: AsRef<Path>>(from: &Path, to: impl Fn(&str) -> Option<P>) -> Result<()> {
    let move_all = || -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if let Some(to) = to(&name.to_string_lossy()) {
                rename(from.join(&name), to.as_ref().join(&name))?;
            }
        }
        sync_folder(from)
    };
    move_all().map_err(Error::work(from))
}

/// Keeps the rows that matched in a part, ascending or not, for the workers of later rules.
pub(crate) fn put_matched(work: &Folder, (rule, bucket): Part, rows: &[u64]) -> Result<()> {
    let folder = work.file(MATCHED);
    make_private_folder(&folder).map_err(Error::work(&folder))?;
    let rows = rows.iter().copied().map(u64::to_le_bytes);
    let rows: Vec<_> = rows.collect();
    work.put(&format!("{MATCHED}/{rule}-{bucket}"), rows.as_flattened())
}

/// The rows that matched in a part, if it is finished.
pub(crate) fn matched(work: &Folder, (rule, bucket): Part) -> Result<Option<Vec<u64>>> {
    let name = format!("{MATCHED}/{rule}-{bucket}");
    let Some(bytes) = work.get(&name)? else {
        return Ok(None);
    };
    match bytes.as_chunks() {
        (rows, []) => Ok(Some(rows.iter().copied().map(u64::from_le_bytes).collect())),
        _ => Err(Error::work(&work.file(&name))(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Whether a worker or a driver left this note.
pub(crate) fn has_note(work: &Folder, name: &str) -> bool {
    work.file(&name.replace('/', "-")).exists()
}

/// Leaves an empty file.
pub(crate) fn put_note(work: &Folder, name: &str) -> Result<()> {
    work.put(&name.replace('/', "-"), b"")
}
