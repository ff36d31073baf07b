//! NumPy files, and the folders that `volery verify` reads.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::sync::Arc;

use volery_field::{ExtensionOf, F2, Fp61, Gf128, Ring, Z64};
use volery_run::embed::{self, Cancel, Events, Level, Run};
use volery_run::guard::PANICKED;
use volery_run::npy::{Form, Header, Reader, Table, Values, Writer};

use super::Script;
use super::files::path;

/// Elements read at a time, so that some files need several reads.
const CHUNK: usize = 7;

/// Ignores all that a verification tells.
struct Silence;

impl Events for Silence {
    fn line(&self, _: Level, _: &str, _: &str) {}

    fn phase(&self, _: &str, _: u64) {}

    fn done(&self, _: u64) {}
}

/// A byte of options, then one array, or the four arrays of a verification, with the lengths of the
/// first three before them.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn npy(data: &[u8]) {
    let mut script = Script(data);
    match script.byte() % 8 {
        0..=3 => array(script.rest()),
        4 => verify::<Fp61, Fp61>(Some("fp61"), &mut script),
        5 => verify::<Z64, Z64>(Some("z64"), &mut script),
        6 => verify::<Gf128, Gf128>(Some("gf128"), &mut script),
        _ => verify::<F2, Gf128>(None, &mut script),
    }
}

fn load<R: Ring>(bytes: &[u8]) -> io::Result<Vec<R>> {
    let mut reader = Reader::new(bytes, bytes.len() as u64)?;
    let header = reader.header().clone();
    if header.form != Form::of::<R>() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The header matches a file of this length.
    let n = usize::try_from(header.n).expect("the length of an array in memory fits in usize");
    let mut elements = vec![R::ZERO; n];
    for part in elements.chunks_mut(CHUNK) {
        reader.read(part)?;
    }
    Ok(elements)
}

fn array(bytes: &[u8]) {
    table(bytes);
    let Ok(reader) = Reader::new(bytes, bytes.len() as u64) else {
        return;
    };
    let Header { n, form } = *reader.header();
    assert!(
        n * form.bytes() as u64 + 10 <= bytes.len() as u64,
        "no more elements than the file holds"
    );
    drop(reader);
    match form {
        Form::Bit => there_and_back::<F2>(bytes),
        Form::Word => {
            there_and_back::<Fp61>(bytes);
            there_and_back::<Z64>(bytes);
        }
        Form::Pair => there_and_back::<Gf128>(bytes),
        Form::Signed => {}
    }
}

/// A table holds the contents of the file, equal to what the stream reader returns.
fn table(bytes: &[u8]) {
    let Ok(table) = Table::read(&mut &*bytes, bytes.len() as u64) else {
        return;
    };
    let count = table.shape().iter().product::<usize>();
    let data = &bytes[bytes.len() - 8 * count..];
    match table.values() {
        Values::Words(words) => {
            assert_eq!(words.len(), count, "one number for each index");
            let in_file = data.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            assert!(in_file.eq(words.iter().copied()), "the words are those of the file");
            let elements = table.elements::<Z64>().expect("any word is an element of z64");
            assert_eq!(elements.len(), count, "one element for each index");
            let canonical = table.elements::<Fp61>().is_ok();
            assert_eq!(canonical, words.iter().all(|word| *word < Fp61::MODULUS), "reduced or not");
            if table.shape().len() == 1 {
                let streamed = load::<Z64>(bytes).expect("the stream reader accepts the same file");
                assert!(streamed == elements[..], "both readers return the same elements");
            }
        }
        Values::Reals(reals) => {
            assert_eq!(reals.len(), count, "one number for each index");
            assert!(table.elements::<Z64>().is_err(), "reals are not ring elements");
        }
    }
}

fn there_and_back<R: Ring>(bytes: &[u8]) {
    let Ok(elements) = load::<R>(bytes) else {
        return;
    };
    let path = path("again.npy");
    let written = File::create(&path).and_then(|file| {
        let mut writer = Writer::new(file, elements.len() as u64)?;
        writer.write(&elements)?;
        writer.finish()
    });
    written.expect("a temporary file can be written");
    let again = fs::read(&path).expect("the written file can be read");
    let data = elements.len() * Form::of::<R>().bytes();
    assert!(again.ends_with(&bytes[bytes.len() - data..]), "the bytes are unchanged");
    assert!(load::<R>(&again).is_ok_and(|again| again == elements), "the elements are unchanged");
}

/// Two folders with correlations `w = u*x + v`. In correlated OT the sender has `x`, called delta,
/// and the receiver `u`.
fn verify<B: Ring, R: ExtensionOf<B>>(ring: Option<&str>, script: &mut Script<'_>) {
    let lengths = [(); 3].map(|()| usize::from(script.word()));
    let first = lengths.map(|length| script.take(length));
    let [u, v, x, w] = [first[0], first[1], first[2], script.rest()];
    let (sender, receiver) = match ring {
        Some(_) => ([("u", u), ("v", v)], [("x", x), ("w", w)]),
        None => ([("delta", x), ("v", v)], [("u", u), ("w", w)]),
    };
    let place = if ring.is_some() { "vole" } else { "cot" };
    let folders = [("sender", sender), ("receiver", receiver)].map(|(role, files)| {
        let folder = path(place).join(role);
        fs::create_dir_all(&folder).expect("the system provides a temporary folder");
        for (letter, bytes) in files {
            let file = File::create(folder.join(letter).with_extension("npy"));
            file.and_then(|mut file| file.write_all(bytes))
                .expect("a temporary file can be written");
        }
        folder
    });
    let ring: Vec<_> = ring.map(|ring| ("ring".to_owned(), ring.into())).into_iter().collect();
    let run = Run::new(Arc::new(Silence), Cancel::default());
    let verdict = embed::verify(folders, &ring, &run).map_err(|failure| failure.to_string());
    // A call turns a panic into a failure.
    let panicked = verdict.as_ref().is_err_and(|text| text.contains(PANICKED));
    assert!(!panicked, "verify panicked: {verdict:?}");

    let holds = || -> Option<bool> {
        let (u, v) = (load::<B>(u).ok()?, load::<R>(v).ok()?);
        let (x, w) = (load::<R>(x).ok()?, load::<R>(w).ok()?);
        let [x] = x[..] else { return None };
        if u.len() != v.len() || u.len() != w.len() || B::BITS == 1 && x == R::ZERO {
            return None;
        }
        Some((0..u.len()).all(|i| w[i] == x.mul_base(u[i]) + v[i]))
    };
    assert_eq!(verdict.is_ok(), holds() == Some(true), "{verdict:?}");
    if let Err(text) = verdict {
        let mut lines = text.lines();
        assert!(
            !lines.any(|line| line.chars().any(char::is_control)),
            "the message has no control characters"
        );
    }
}
