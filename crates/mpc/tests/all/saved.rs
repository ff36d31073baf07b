//! Batches in files: given out once, to both parties of one session.

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
    saved::write(&keys, &folder.join("keys"), id(session)).unwrap();
    saved::write(&values, &folder.join("values"), id(session)).unwrap();
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
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (folder.path().join("keys"), folder.path().join("values"));
    write::<Gf128, F2>(folder.path(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&left).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A new batch does not take the place of one.
    let new =
        KeysBatch::<Z64>::draw(0, &mut vole::ideal::pair(Z64::ONE, Block::ONE).1, &mut lonely());
    assert_eq!(kind(saved::write(&new.unwrap(), &left, id(2))), ErrorKind::AlreadyExists);
    // As a reader that has opened the file before.
    let link = folder.path().join("link");
    fs::hard_link(&left, &link).unwrap();
    let (keys, values) = read::<CotKeys, CotValues>(&left, &right);
    let (mut keys, mut values) = (keys.unwrap(), values.unwrap());
    for n in [0, 3, 1000] {
        let (mut v, mut u, mut w) =
            (vec![Block::ZERO; n], vec![0; bytes_for(n)], vec![Block::ZERO; n]);
        CotSender::extend(&mut keys, &mut v, &mut lonely()).unwrap();
        CotReceiver::extend(&mut values, &mut u, &mut w, &mut lonely()).unwrap();
        ideal::assert_cot(keys.delta(), &v, &u, &w);
    }
    let more = std::panic::AssertUnwindSafe(|| {
        CotSender::extend(&mut keys, &mut [Block::ZERO], &mut lonely())
    });
    assert!(std::panic::catch_unwind(more).is_err(), "none is left");
    assert!(!left.exists() && !right.exists());
    assert_eq!(kind(saved::read::<CotKeys>(&link, &mut lonely())), ErrorKind::NotFound);
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
    for len in [0, 10, 40, 80, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(read(), ErrorKind::InvalidData, "{len} bytes");
    }
    for at in [0, 18, 60, whole.len() - 40, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(), ErrorKind::InvalidData, "byte {at}");
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
fn vector_oles_and_triples_come_back() {
    fn check<R: ExtensionOf<B>, B: Ring>() {
        let folder = tempfile::tempdir().unwrap();
        write::<R, B>(folder.path(), 1);
        let [left, right] = ["keys", "values"].map(|name| folder.path().join(name));
        let (keys, values) = read::<KeysBatch<R, B>, ValuesBatch<R, B>>(&left, &right);
        let (mut u, mut v, mut w) = (vec![B::ZERO; N], vec![R::ZERO; N], vec![R::ZERO; N]);
        values.unwrap().extend(&mut u, &mut v, &mut lonely()).unwrap();
        keys.unwrap().extend(&mut w, &mut lonely()).unwrap();
        vole::ideal::assert_vole(R::power_of_two(3), &u, &v, &w);
    }
    check::<Fp61, Fp61>();
    check::<Z64, Z64>();
    let folder = tempfile::tempdir().unwrap();
    let party = |role: Role| {
        let path = folder.path().join(role.name());
        move |channel: &mut Channel| {
            let (mut sender, mut receiver) = ots(role);
            let ots = (&mut sender, &mut receiver);
            let bits = bits::triples(N, role, ots, channel).unwrap();
            saved::write(&(role, bits), &path, id(1)).unwrap();
            let (_, bits): (Role, bits::Triples) = saved::read(&path, channel).unwrap();
            unpack(N, &bits)
        }
    };
    let (a, b) = run_two_parties(party(Role::Sender), party(Role::Receiver));
    assert_products(a.each_ref().map(|a| &a[..]), b.each_ref().map(|b| &b[..]));
}
