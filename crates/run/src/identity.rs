//! A party's identity as a folder of files.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use pkcs8::der::pem::LineEnding;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument};
use volery_channel::Error;
use volery_channel::tls::Identity;
use volery_os::fs::sync_all;
use volery_os::sync::mpsc;
use volery_os::thread;
use volery_os::time::{Duration, Instant, wall_clock};
use zeroize::Zeroizing;

use crate::failure::{Failure, Result, Status};
use crate::output::Folder;
use crate::system::is_exposed;

/// The certificate and the private key.
const IDENTITY: &str = "identity.pem";

/// The fingerprint, kept so that it can be shown again.
const FINGERPRINT: &str = "fingerprint.txt";

/// Longest file read, in bytes; an identity has about a thousand.
const BOUND: u64 = 64 << 10;

/// The longest time of a command that prints an identity.
const COMMAND: Duration = Duration::from_secs(30);

/// The beginnings of a private key in PEM: plain, and encrypted.
const PRIVATE: &str = "-----BEGIN PRIVATE";
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE";

/// The source of the passphrase of a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassphraseSource {
    /// The terminal.
    Prompt,
    /// A file that only its owner can read.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
}

impl FromStr for PassphraseSource {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "prompt" => Ok(Self::Prompt),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("env", name)) if !name.is_empty() => Ok(Self::Variable(name.to_owned())),
            _ => Err("give file:PATH, env:NAME or prompt, not the passphrase itself"),
        }
    }
}

impl PassphraseSource {
    /// The passphrase; a new one is asked for twice.
    fn read(&self, is_new: bool, group: bool) -> Result<Zeroizing<String>> {
        let failed = |what: &dyn std::fmt::Display| {
            Failure::new(Status::Other, format_args!("--identity-passphrase: {what}"))
        };
        let ask = |prompt: &str| {
            let typed = rpassword::prompt_password(prompt).map(Zeroizing::new);
            typed.map_err(|error| {
                failed(&format_args!("the terminal: {error}"))
                    .with_hint("without a terminal give file:PATH or env:NAME")
            })
        };
        let passphrase = match self {
            Self::Prompt => {
                let passphrase = ask("passphrase of the identity: ")?;
                if is_new && *ask("the same again: ")? != *passphrase {
                    return Err(failed(&"the two are not the same"));
                }
                passphrase
            }
            Self::File(path) => read_private(path, group).map_err(|error| {
                failed(&format_args!("{}: {error}", path.display()))
                    .with_hint(format_args!("chmod 600 {}", path.display()))
            })?,
            Self::Variable(name) => Zeroizing::new(
                std::env::var(name).map_err(|error| failed(&format_args!("{name}: {error}")))?,
            ),
        };
        let end = passphrase.trim_end_matches(['\r', '\n']).len();
        match &passphrase[..end] {
            "" => Err(failed(&"the passphrase is empty")),
            passphrase => Ok(Zeroizing::new(passphrase.to_owned())),
        }
    }
}

/// Replaces the private key that begins with `from` in PEM by what `change` makes of its DER.
fn rewrite(
    pem: &str,
    [from, to]: [&'static str; 2],
    change: impl FnOnce(&[u8]) -> pkcs8::Result<SecretDocument>,
) -> pkcs8::Result<Zeroizing<String>> {
    let (certificates, private) = pem.split_at(pem.find(from).unwrap_or(0));
    let (_, key) = SecretDocument::from_pem(private)?;
    let private = change(key.as_bytes())?.to_pem(to, LineEnding::LF)?;
    Ok(Zeroizing::new([certificates, &private].concat()))
}

/// The place of a party's identity.
#[derive(Clone, Copy, Debug)]
pub struct IdentitySource<'a> {
    /// A folder.
    pub folder: Option<&'a Path>,
    /// A command that prints the identity.
    pub command: Option<&'a str>,
    /// The source of the passphrase, if the private key is encrypted.
    pub passphrase: Option<&'a PassphraseSource>,
    /// Whether the group of a file may read it.
    pub group: bool,
}

/// Writes `identity` into `folder`, its private key encrypted if there is a passphrase, and commits
/// the folder.
pub(crate) fn store(
    identity: &Identity,
    passphrase: Option<&PassphraseSource>,
    folder: Folder,
) -> Result<()> {
    let fingerprint = format!("{}\n", identity.fingerprint());
    let encrypted = passphrase.map(|source| {
        let passphrase = source.read(true, false)?;
        rewrite(identity.to_pem(), [PRIVATE, "ENCRYPTED PRIVATE KEY"], |key| {
            PrivateKeyInfoRef::try_from(key)?.encrypt(passphrase.as_bytes())
        })
        .map_err(|error| Failure::new(Status::Other, format_args!("encrypting the key: {error}")))
    });
    let encrypted = encrypted.transpose()?;
    let pem = encrypted.as_ref().map_or(identity.to_pem(), |pem| pem.as_str());
    for (name, contents) in [(IDENTITY, pem), (FINGERPRINT, &fingerprint)] {
        let mut file = folder.create(name)?;
        file.write_all(contents.as_bytes())
            .and_then(|()| sync_all(&file))
            .map_err(|error| Failure::file(&folder.target().join(name), error))?;
    }
    folder.commit()
}

impl IdentitySource<'_> {
    /// The identity, if one is named; checks that it is valid now.
    ///
    /// # Errors
    /// A failure that names the option, the place, and the remedy.
    pub fn load(&self) -> Result<Option<Identity>> {
        let (place, pem) = match (self.folder, self.command) {
            (None, None) if self.passphrase.is_none() => return Ok(None),
            (None, None) => {
                let what = "requires --identity or --identity-command";
                return Err(Failure::usage("--identity-passphrase", what));
            }
            (Some(_), Some(_)) => {
                let what = "not with --identity: name one of them";
                return Err(Failure::usage("--identity-command", what));
            }
            (Some(folder), None) => {
                let path = folder.join(IDENTITY);
                (format!("--identity: {}", path.display()), read_identity(&path, self.group)?)
            }
            (None, Some(line)) => ("--identity-command".to_owned(), run_command(line, COMMAND)?),
        };
        self.parse(&place, pem).map(Some)
    }

    fn parse(&self, place: &str, mut pem: Zeroizing<String>) -> Result<Identity> {
        let unusable = |why: &dyn std::fmt::Display| {
            Failure::new(Status::Other, format_args!("{place}: {why}"))
        };
        if pem.contains(ENCRYPTED) {
            let passphrase = self.passphrase.ok_or_else(|| {
                unusable(&"its private key is encrypted").with_hint(
                    "--identity-passphrase file:PATH, env:NAME or prompt gives the passphrase",
                )
            })?;
            let passphrase = passphrase.read(false, self.group)?;
            let decrypted = rewrite(&pem, [ENCRYPTED, "PRIVATE KEY"], |key| {
                EncryptedPrivateKeyInfoRef::try_from(key)?.decrypt(passphrase.as_bytes())
            });
            pem = decrypted.map_err(|_| {
                unusable(&"the passphrase is not that of its private key, or the key is damaged")
            })?;
        }
        let why = |error: Error| match error {
            Error::Identity(why) => why,
            other => other.to_string(),
        };
        let identity = Identity::from_pem(&pem).map_err(|error| unusable(&why(error)))?;
        identity.check(wall_clock()).map_err(|error| {
            unusable(&why(error)).with_hint(
                "make a new identity with 'volery keygen --out DIR' and give the other party its fingerprint",
            )
        })?;
        Ok(identity)
    }
}

/// Runs a command, without a shell, for at most `limit`, and returns what it prints.
fn run_command(line: &str, limit: Duration) -> Result<Zeroizing<String>> {
    let failed = |what: &dyn std::fmt::Display| {
        Failure::new(Status::Other, format_args!("--identity-command: {what}"))
    };
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        Failure::usage("--identity-command", "it is empty, or a quote is not closed")
    })?;
    // Words behind the first one may be secrets.
    let name = &words[0];
    let mut errors = tempfile::tempfile().map_err(|error| failed(&error))?;
    let stderr = errors.try_clone().map_err(|error| failed(&error))?;
    let child = Command::new(name)
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn();
    let mut child = child.map_err(|error| {
        failed(&format_args!("cannot start '{name}': {error}"))
            .with_hint("name a program and its arguments; for a shell give sh -c '..'")
    })?;
    let stdout = child.stdout.take().expect("it is piped");
    let (done, printed) = mpsc::channel();
    // Nobody waits for this thread: what the command has started may keep the pipe open.
    thread::spawn(move || done.send(read_secret(stdout)));
    let start = Instant::now();
    let late = || io::Error::other(format!("it has not ended after {limit:?}"));
    let printed = printed.recv_timeout(limit).unwrap_or_else(|_| Err(late()));
    let ended = printed.and_then(|printed| {
        loop {
            match child.try_wait()? {
                Some(status) => break Ok((printed, status)),
                None if start.elapsed() >= limit => break Err(late()),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    });
    let why = match ended {
        Ok((printed, status)) if status.success() => return Ok(printed),
        Ok((_, status)) => format!(" ended with {status}"),
        Err(error) => {
            // It may wait for somebody to read the rest.
            let _ = child.kill().and_then(|()| child.wait());
            format!(": {error}")
        }
    };
    let mut said = Vec::new();
    let read = errors.rewind().and_then(|()| (&errors).take(1000).read_to_end(&mut said));
    let said = read.map(|_| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
    let first: String = first.chars().filter(|c| !c.is_control()).take(200).collect();
    Err(failed(&format_args!("'{name}'{why}; it said: {first}"))
        .with_hint("run the command by hand, as the same user and without a terminal"))
}

fn read_identity(path: &Path, group: bool) -> Result<Zeroizing<String>> {
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::new(Status::Other, format_args!("--identity: {}: {why}", path.display()))
    };
    read_private(path, group).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unusable(&"there is no identity")
            .with_hint("'volery keygen --out DIR' makes one and prints its fingerprint"),
        io::ErrorKind::PermissionDenied
            if fs::metadata(path).is_ok_and(|data| is_exposed(&data, group)) =>
        {
            unusable(&error).with_hint(format_args!(
                "chmod 600 {}; if others could read it, make a new identity; --allow-group-readable-identity accepts \
                 mode 0440 and 0640, where the group is meant to read it",
                path.display()
            ))
        }
        _ => unusable(&error),
    })
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
    read_secret(file)
}

/// Reads a secret text to its end.
fn read_secret(mut from: impl Read) -> io::Result<Zeroizing<String>> {
    // Space for the whole text: a growing buffer would leave copies of it behind.
    let mut bytes = Zeroizing::new(vec![0; BOUND as usize + 1]);
    let mut length = 0;
    loop {
        match from.read(&mut bytes[length..]) {
            Ok(0) if length > BOUND as usize => {
                return Err(io::Error::other("it is longer than an identity"));
            }
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let text = std::str::from_utf8(&bytes[..length]);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn stored(place: &Path, last: SystemTime) -> Identity {
        let identity = Identity::generate("test", last - 3 * DAY..last).unwrap();
        let folder = Folder::prepare("--out", &place.join("id"), false).unwrap();
        store(&identity, None, folder).unwrap();
        identity
    }

    fn load(folder: &Path, group: bool) -> Result<Identity> {
        let source =
            IdentitySource { folder: Some(folder), command: None, passphrase: None, group };
        source.load().map(Option::unwrap)
    }

    fn refused(place: &Path) -> String {
        load(&place.join("id"), false).unwrap_err().to_string()
    }

    #[test]
    fn an_unusable_identity_is_refused_with_reason_and_remedy() {
        let place = tempfile::tempdir().unwrap();
        assert!(refused(place.path()).contains("hint: 'volery keygen"));
        stored(place.path(), wall_clock() - DAY);
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
    fn a_command_prints_the_identity() {
        let place = tempfile::tempdir().unwrap();
        let identity = stored(place.path(), wall_clock() + DAY);
        let load = |line: &str| {
            let command = Some(line);
            IdentitySource { folder: None, command, passphrase: None, group: false }.load()
        };
        let cat = format!("cat '{}'", place.path().join("id/identity.pem").display());
        assert_eq!(load(&cat).unwrap().unwrap().fingerprint(), identity.fingerprint());
        for (line, reason) in [
            (
                "sh -c 'echo; echo first >&2; echo second >&2; exit 7'",
                "exit status: 7; it said: first",
            ),
            ("cat /dev/zero", "'cat': it is longer than an identity"),
            ("echo $HOME", "it contains no certificate"),
            ("printf '\\377'", "it is not UTF-8"),
        ] {
            let why = load(line).unwrap_err().message().to_owned();
            assert!(why.starts_with("--identity-command: ") && why.contains(reason), "{why}");
        }
        // One that prints nothing, and one that does not end after it.
        for line in ["sleep 1000", "sh -c 'exec >&-; exec sleep 1000'"] {
            let late = run_command(line, Duration::from_millis(50)).unwrap_err();
            assert!(late.message().contains("it has not ended after 50ms; it said: "), "{late}");
        }
    }
}
