//! A party's identity as a folder of files.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

use volery_channel::Error;
use volery_channel::tls::Identity;
use zeroize::Zeroizing;

use crate::failure::{Failure, Status};
use crate::output::Folder;
use crate::system::is_exposed;

/// The certificate and the private key.
const IDENTITY: &str = "identity.pem";

/// The fingerprint, kept so that it can be shown again.
const FINGERPRINT: &str = "fingerprint.txt";

/// Longest file read, in bytes; an identity has about a thousand.
const BOUND: u64 = 64 << 10;

/// Writes `identity` into `folder` and commits the folder.
pub(crate) fn store(identity: &Identity, folder: Folder) -> Result<(), Failure> {
    let fingerprint = format!("{}\n", identity.fingerprint());
    for (name, contents) in [(IDENTITY, identity.to_pem()), (FINGERPRINT, &fingerprint)] {
        let mut file = folder.create(name)?;
        file.write_all(contents.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| Failure::file(&folder.target().join(name), error))?;
    }
    folder.commit()
}

/// Reads the identity in `folder`; checks that it is valid now and that no other user can read it,
/// or, with `group`, that none beyond its group can.
///
/// # Errors
/// A failure that names `--identity`, the folder, and the remedy.
pub fn load(folder: &Path, group: bool) -> Result<Identity, Failure> {
    let path = folder.join(IDENTITY);
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::new(Status::Other, format_args!("--identity: {}: {why}", path.display()))
    };
    let pem = read_private(&path, group).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unusable(&"there is no identity")
            .with_hint("'volery keygen --out DIR' makes one and prints its fingerprint"),
        io::ErrorKind::PermissionDenied
            if fs::metadata(&path).is_ok_and(|data| is_exposed(&data, group)) =>
        {
            unusable(&error).with_hint(format_args!(
                "chmod 600 {}; if others could read it, make a new identity; --allow-group-readable-identity accepts \
                 mode 0440 and 0640, where the group is meant to read it",
                path.display()
            ))
        }
        _ => unusable(&error),
    })?;
    let why = |error: Error| match error {
        Error::Identity(why) => why,
        other => other.to_string(),
    };
    let identity = Identity::from_pem(&pem).map_err(|error| unusable(&why(error)))?;
    identity.check(SystemTime::now()).map_err(|error| {
        unusable(&why(error)).with_hint(
            "make a new identity with 'volery keygen --out DIR' and give the other party its fingerprint",
        )
    })?;
    Ok(identity)
}

/// Reads a private key that no other user can read.
pub fn read_private(path: &Path, group: bool) -> io::Result<Zeroizing<String>> {
    let file = File::open(path)?;
    // Metadata of the opened file, even if its name now leads elsewhere.
    let data = file.metadata()?;
    if is_exposed(&data, group) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users can read or change this private key",
        ));
    }
    if !data.is_file() || data.len() > BOUND {
        return Err(io::Error::other("this is not an identity file"));
    }
    // Capacity for the whole file: a growing buffer would leave copies of the key behind.
    let mut pem = Zeroizing::new(String::with_capacity(BOUND as usize + 1));
    file.take(BOUND + 1).read_to_string(&mut pem)?;
    Ok(pem)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn stored(place: &Path, last: SystemTime) -> Identity {
        let identity = Identity::generate("test", last - 3 * DAY..last).unwrap();
        let folder = Folder::prepare("--out", &place.join("id"), false).unwrap();
        store(&identity, folder).unwrap();
        identity
    }

    fn refused(place: &Path) -> String {
        load(&place.join("id"), false).unwrap_err().to_string()
    }

    #[test]
    fn a_stored_identity_loads_and_is_private() {
        let place = tempfile::tempdir().unwrap();
        let identity = stored(place.path(), SystemTime::now() + DAY);
        let loaded = load(&place.path().join("id"), false).unwrap();
        assert_eq!(loaded.fingerprint(), identity.fingerprint());
        let mode = |path: &str| {
            fs::metadata(place.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(mode("id"), 0o700);
        assert_eq!(mode("id/identity.pem"), 0o600);
        let text = fs::read_to_string(place.path().join("id/fingerprint.txt")).unwrap();
        assert_eq!(text.trim().parse(), Ok(identity.fingerprint()));
    }

    #[test]
    fn an_unusable_identity_is_refused_with_reason_and_remedy() {
        let place = tempfile::tempdir().unwrap();
        assert!(refused(place.path()).contains("hint: 'volery keygen"));
        stored(place.path(), SystemTime::now() - DAY);
        let late = refused(place.path());
        assert!(late.contains("error: --identity:") && late.contains("it expired on"), "{late}");
        assert!(late.contains("hint: make a new identity"), "{late}");

        let path = place.path().join("id/identity.pem");
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(refused(place.path()).contains("hint: chmod 600"), "{mode:o}");
        }
        // Its group may read it where that is asked for; others never, and nobody may write it.
        for (mode, accepted) in [
            (0o640, true),
            (0o440, true),
            (0o600, true),
            (0o644, false),
            (0o660, false),
            (0o444, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let result = load(&place.path().join("id"), true);
            let exposed = result.unwrap_err().to_string().contains("other users can read");
            assert_eq!(exposed, !accepted, "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "x".repeat(100_000)).unwrap();
        assert!(refused(place.path()).contains("not an identity file"));
        fs::write(&path, b"\xff").unwrap();
        assert!(refused(place.path()).contains("UTF-8"));
        fs::write(&path, b"-----BEGIN").unwrap();
        assert!(refused(place.path()).contains("no certificate"));
    }

    #[test]
    fn an_identity_is_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        stored(place.path(), SystemTime::now() + DAY);
        for force in [false, true] {
            let refused = Folder::prepare("--out", &place.path().join("id"), force);
            assert!(refused.is_err(), "{force}");
        }
    }
}
