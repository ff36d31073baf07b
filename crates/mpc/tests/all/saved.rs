//! Batches in files: given out once, to both parties of one session.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::{fs, io::ErrorKind, path::Path};

use volery_mpc::saved::{self, Batch, CotKeys, CotValues, KeysBatch, ValuesBatch};

use super::*;

const N: usize = 1003;

fn lonely() -> Channel {
    Channel::memory_pair().0
}

/// Both parties' batches, in `keys` and `values`.
fn write<R: ExtensionOf<B>, B: Ring>(folder: &Path, session: u8) {
    let (mut sender, mut receiver) = vole::ideal::pair::<R, B>(R::power_of_two(3), Block::from(5));
    let keys = KeysBatch::<R, B>::draw(N, &mut receiver, &mut lonely()).unwrap();
    let values = ValuesBatch::draw(N, &mut sender, &mut lonely()).unwrap();
    saved::write(keys, &folder.join("keys"), id(session)).unwrap();
    saved::write(values, &folder.join("values"), id(session)).unwrap();
}

fn read<A: Batch + Send, B: Batch + Send>(left: &Path, right: &Path) -> (Result<A>, Result<B>) {
    run_two_unchecked(|channel| saved::read(left, channel), |channel| saved::read(right, channel))
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    match result.map(drop) {
        Err(Error::Io(error)) => error.kind(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_is_read_once() {
    fn check<R: ExtensionOf<B>, B: Ring>() -> (KeysBatch<R, B>, ValuesBatch<R, B>) {
        let folder = tempfile::tempdir().unwrap();
        let [left, right, link] = ["keys", "values", "link"].map(|name| folder.path().join(name));
        write::<R, B>(folder.path(), 1);
        #[cfg(unix)]
        assert_eq!(fs::metadata(&left).unwrap().permissions().mode() & 0o777, 0o600);
        // As a reader that has opened the file before.
        fs::hard_link(&left, &link).unwrap();
        let (keys, values) = read::<KeysBatch<R, B>, ValuesBatch<R, B>>(&left, &right);
        let (mut keys, mut values) = (keys.unwrap(), values.unwrap());
        let (mut u, mut v, mut w) = ([B::ZERO; 3], [R::ZERO; 3], [R::ZERO; 3]);
        values.extend(&mut u, &mut v, &mut lonely()).unwrap();
        keys.extend(&mut w, &mut lonely()).unwrap();
        vole::ideal::assert_vole(R::power_of_two(3), &u, &v, &w);
        assert!(!left.exists() && !right.exists());
        assert_eq!(kind(saved::read::<KeysBatch<R, B>>(&link, &mut lonely())), ErrorKind::NotFound);
        // A new batch does not take the place of one.
        let other = (Role::Sender, bits::Triples { len: 0, a: vec![], b: vec![], c: vec![] });
        assert_eq!(kind(saved::write(other, &link, id(2))), ErrorKind::AlreadyExists);
        (keys, values)
    }
    check::<Fp61, Fp61>();
    check::<Z64, Z64>();
    let (mut keys, mut values) = check::<Gf128, F2>();
    let (mut v, mut u, mut w) = ([Block::ZERO; 1000], [0; 125], [Block::ZERO; 1000]);
    CotSender::extend(&mut keys, &mut v, &mut lonely()).unwrap();
    CotReceiver::extend(&mut values, &mut u, &mut w, &mut lonely()).unwrap();
    ideal::assert_cot(keys.delta(), &v, &u, &w);
}

/// Both parties refuse a wrong pair, and keep it.
#[test]
fn batches_that_do_not_belong_together_are_a_mismatch() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    (1..).zip(&folders).for_each(|(session, folder)| write::<Gf128, F2>(folder.path(), session));
    let file = |k: usize, name| folders[k].path().join(name);
    let of = |field: &str, error| matches!(error, Error::Mismatch { field: of, .. } if of == field);
    let (a, b) = read::<CotKeys, CotValues>(&file(0, "keys"), &file(1, "values"));
    assert!(of("saved batch", a.err().unwrap()) && of("saved batch", b.err().unwrap()));
    fs::copy(file(0, "keys"), file(1, "copy")).unwrap();
    let (a, b) = read::<CotKeys, CotKeys>(&file(0, "keys"), &file(1, "copy"));
    assert!(of("part of the saved batch", a.err().unwrap()) && b.is_err());
    let (a, b) = read::<CotKeys, CotValues>(&file(0, "keys"), &file(0, "values"));
    assert!(a.is_ok() && b.is_ok());
}

#[test]
fn a_file_that_is_no_whole_batch_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write::<Gf128, F2>(folder.path(), 1);
    let path = folder.path().join("keys");
    let read = || kind(saved::read::<CotKeys>(&path, &mut lonely()));
    let locked = fs::File::open(&path).unwrap();
    locked.lock().unwrap();
    assert_eq!(read(), ErrorKind::WouldBlock);
    drop(locked);
    let other = saved::read::<KeysBatch<Fp61>>(&path, &mut lonely());
    assert_eq!(kind(other), ErrorKind::InvalidData);
    let whole = fs::read(&path).unwrap();
    for at in [0, 18, 60, whole.len() - 40, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        for bytes in [&bytes[..], &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(), ErrorKind::InvalidData, "byte {at}");
        }
    }
    // Gone before it can be removed.
    fs::write(&path, &whole).unwrap();
    let (result, ()) = run_two_unchecked(
        |channel| saved::read::<CotKeys>(&path, channel).map(drop),
        |channel| {
            let mut part = [0; 33];
            channel.recv(&mut part).unwrap();
            fs::remove_file(&path).unwrap();
            part[0] ^= 1;
            channel.send(&part).and_then(|()| channel.flush()).unwrap();
        },
    );
    assert_eq!(kind(result), ErrorKind::NotFound);
}

#[test]
fn saved_triples_are_products() {
    let folder = tempfile::tempdir().unwrap();
    assert_products(|role, channel| {
        let ((mut sender, mut receiver), path) = (ots(role), folder.path().join(role.name()));
        let bits = bits::triples(N, role, (&mut sender, &mut receiver), channel).unwrap();
        saved::write((role, bits), &path, id(1)).unwrap();
        unpack(&saved::read::<(Role, bits::Triples)>(&path, channel).unwrap().1)
    });
}

/// Correlations used before are not in the file.
#[test]
fn a_batch_in_use_is_saved_without_what_was_used() {
    let folder = tempfile::tempdir().unwrap();
    let [left, right] = ["keys", "values"].map(|name| folder.path().join(name));
    let (mut sender, mut receiver) = vole::ideal::pair::<Fp61, Fp61>(Fp61::ONE, Block::from(5));
    let mut keys = KeysBatch::<Fp61>::draw(N, &mut receiver, &mut lonely()).unwrap();
    let mut values = ValuesBatch::<Fp61>::draw(N, &mut sender, &mut lonely()).unwrap();
    let (mut u, mut v, mut w) = ([Fp61::ZERO; 3], [Fp61::ZERO; 3], [Fp61::ZERO; 3]);
    values.extend(&mut u, &mut v, &mut lonely()).unwrap();
    keys.extend(&mut w, &mut lonely()).unwrap();
    saved::write(keys, &left, id(1)).unwrap();
    saved::write(values, &right, id(1)).unwrap();
    let (keys, values) = read::<KeysBatch<Fp61>, ValuesBatch<Fp61>>(&left, &right);
    let (mut keys, mut values) = (keys.unwrap(), values.unwrap());
    let (mut u, mut w) = (vec![Fp61::ZERO; N - 3], vec![Fp61::ZERO; N - 3]);
    let mut rest = u.clone();
    values.extend(&mut u, &mut rest, &mut lonely()).unwrap();
    keys.extend(&mut w, &mut lonely()).unwrap();
    assert!((0..N - 3).all(|i| w[i] == u[i] + rest[i]) && !rest.contains(&v[0]));
}
