//! Batches in files: given out once, to both parties of one session.

use std::fs;
use std::path::Path;

use volery_field::F2;
use volery_mpc::saved::{self, Batch, CotReceiverBatch, CotSenderBatch, KeysBatch, ValuesBatch};

use super::*;

const N: usize = 1003;

/// Both parties' batches of correlated OTs, in `sender` and `receiver`.
fn write_cots(folder: &Path, session: u8) {
    let (mut sender, mut receiver) = ideal::pair(Block::from(77), Block::from(5));
    let channel = &mut Channel::memory_pair().0;
    let keys = CotSenderBatch::draw_cot(N, &mut sender, channel).unwrap();
    let values = CotReceiverBatch::draw_cot(N, &mut receiver, channel).unwrap();
    saved::write(&keys, &folder.join("sender"), id(session)).unwrap();
    saved::write(&values, &folder.join("receiver"), id(session)).unwrap();
}

fn read_both<A: Batch + Send, B: Batch + Send>(
    left: &Path,
    right: &Path,
) -> (Result<A>, Result<B>) {
    run_two_unchecked(|channel| saved::read(left, channel), |channel| saved::read(right, channel))
}

type Cots = (Result<CotSenderBatch>, Result<CotReceiverBatch>);

#[test]
fn a_batch_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (folder.path().join("sender"), folder.path().join("receiver"));
    write_cots(folder.path(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&left).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A new batch does not replace one.
    let empty = ValuesBatch::<Z64>::draw(
        0,
        &mut vole::ideal::pair(Z64::ONE, Block::ONE).0,
        &mut Channel::memory_pair().0,
    )
    .unwrap();
    assert!(matches!(saved::write(&empty, &left, id(2)), Err(Error::Io(_))));
    // A reader that has opened the file before, as by a hard link, finds it used.
    let link = folder.path().join("link");
    fs::hard_link(&left, &link).unwrap();
    let (sender, receiver): Cots = read_both(&left, &right);
    let (mut sender, mut receiver) = (sender.unwrap(), receiver.unwrap());
    assert!(!left.exists() && !right.exists());
    let channel = &mut Channel::memory_pair().0;
    for n in [0, 3, 1000] {
        let (mut v, mut u, mut w) =
            (vec![Block::ZERO; n], vec![0; bytes_for(n)], vec![Block::ZERO; n]);
        CotSender::extend(&mut sender, &mut v, channel).unwrap();
        CotReceiver::extend(&mut receiver, &mut u, &mut w, channel).unwrap();
        ideal::assert_cot(sender.delta(), &v, &u, &w);
    }
    for path in [&left, &link] {
        let again = saved::read::<CotSenderBatch>(path, channel).map(|_| ());
        let Err(Error::Io(error)) = again else { panic!("{again:?}") };
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    }
    let more = std::panic::AssertUnwindSafe(|| {
        CotSender::extend(&mut sender, &mut [Block::ZERO], &mut Channel::memory_pair().0)
    });
    assert!(std::panic::catch_unwind(more).is_err(), "none is left");
}

/// Wrong pairs are refused by both parties, and stay.
#[test]
fn batches_that_do_not_belong_together_are_a_mismatch() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    (1..).zip(&folders).for_each(|(session, folder)| write_cots(folder.path(), session));
    let [left, right] =
        [("sender", 0), ("receiver", 1)].map(|(name, k)| folders[k].path().join(name));
    let (a, b): Cots = read_both(&left, &right);
    assert!(matches!(a, Err(Error::Mismatch { field, .. }) if field == "saved batch"));
    assert!(matches!(b, Err(Error::Mismatch { .. })));
    let copy = folders[1].path().join("copy");
    fs::copy(&left, &copy).unwrap();
    let (a, b): (Result<CotSenderBatch>, Result<CotSenderBatch>) = read_both(&left, &copy);
    assert!(matches!(a, Err(Error::Mismatch { field, .. }) if field == "side of the saved batch"));
    assert!(b.is_err() && left.exists() && copy.exists());
    let (a, b): Cots = read_both(&left, &folders[0].path().join("receiver"));
    assert!(a.is_ok() && b.is_ok());
}

/// A file that is locked, of another kind, or not whole gives nothing.
#[test]
fn a_file_that_is_not_a_whole_batch_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_cots(folder.path(), 1);
    let path = folder.path().join("sender");
    let kind = |error: Result<()>| match error {
        Err(Error::Io(error)) => error.kind(),
        other => panic!("{other:?}"),
    };
    let lonely = || Channel::memory_pair().0;
    let read = || kind(saved::read::<CotSenderBatch>(&path, &mut lonely()).map(|_| ()));
    let locked = fs::File::open(&path).unwrap();
    locked.lock().unwrap();
    assert_eq!(read(), std::io::ErrorKind::WouldBlock);
    drop(locked);
    let other = saved::read::<KeysBatch<Fp61>>(&path, &mut lonely()).map(|_| ());
    assert_eq!(kind(other), std::io::ErrorKind::InvalidData);
    let whole = fs::read(&path).unwrap();
    for change in [20, 60, whole.len() - 40, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[change] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(), std::io::ErrorKind::InvalidData, "byte {change}");
    }
    for len in [0, 10, 40, 80, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(read(), std::io::ErrorKind::InvalidData, "{len} bytes");
    }
}

/// The file is not where its name was any more.
#[test]
fn a_file_that_cannot_be_removed_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_cots(folder.path(), 1);
    let path = folder.path().join("sender");
    let (sender, ()) = run_two_unchecked(
        |channel| saved::read::<CotSenderBatch>(&path, channel).map(|_| ()),
        |channel| {
            let mut part = [0; 33];
            channel.recv(&mut part).unwrap();
            fs::remove_file(&path).unwrap();
            part[0] ^= 1;
            channel.send(&part).and_then(|()| channel.flush()).unwrap();
        },
    );
    assert!(matches!(sender, Err(Error::Io(_))), "{sender:?}");
}

#[test]
fn vector_oles_and_triples_come_back() {
    fn check<R: volery_field::ExtensionOf<B>, B: Ring>(x: R) {
        let folder = tempfile::tempdir().unwrap();
        let (mut sender, mut receiver) = vole::ideal::pair::<R, B>(x, Block::from(9));
        let channel = &mut Channel::memory_pair().0;
        let values = ValuesBatch::draw(N, &mut sender, channel).unwrap();
        let keys = KeysBatch::<R, B>::draw(N, &mut receiver, channel).unwrap();
        let [left, right] = ["left", "right"].map(|name| folder.path().join(name));
        saved::write(&values, &left, id(1)).unwrap();
        saved::write(&keys, &right, id(1)).unwrap();
        let (values, keys): (Result<ValuesBatch<R, B>>, Result<KeysBatch<R, B>>) =
            read_both(&left, &right);
        let (mut u, mut v, mut w) = (vec![B::ZERO; N], vec![R::ZERO; N], vec![R::ZERO; N]);
        values.unwrap().extend(&mut u, &mut v, channel).unwrap();
        let mut keys = keys.unwrap();
        VoleReceiver::extend(&mut keys, &mut w, channel).unwrap();
        vole::ideal::assert_vole(keys.x(), &u, &v, &w);
    }
    check::<Fp61, Fp61>(Fp61::reduce(7));
    check::<Z64, Z64>(Z64::new(7));
    check::<Gf128, F2>(Gf128::new(Block::from(7)));

    let folder = tempfile::tempdir().unwrap();
    let [left, right] = ["left", "right"].map(|name| folder.path().join(name));
    let party = |role, path| {
        move |channel: &mut Channel| {
            let mut ots = ots(role);
            let bits = bits::triples(N, role, (&mut ots.0, &mut ots.1), channel).unwrap();
            let own = (&mut ots.0, &mut ots.1);
            let ring = arithmetic::triples::<Fp61>(9, role, own, &mut rng(role as u128), channel);
            saved::write(&(role, bits), path, id(1)).unwrap();
            let (_, bits): (Role, bits::Triples) = saved::read(path, channel).unwrap();
            saved::write(&(role, ring.unwrap()), path, id(1)).unwrap();
            let (_, ring): (Role, arithmetic::Triples<Fp61>) = saved::read(path, channel).unwrap();
            (bits, ring)
        }
    };
    let (a, b) = run_two_parties(party(Role::Sender, &left), party(Role::Receiver, &right));
    assert_products(N, [&a.0, &b.0].map(|t| [&t.a[..], &t.b, &t.c]));
    let sum = |k: fn(&arithmetic::Triples<Fp61>) -> &Vec<Fp61>, i: usize| k(&a.1)[i] + k(&b.1)[i];
    assert!((0..9).all(|i| sum(|t| &t.a, i) * sum(|t| &t.b, i) == sum(|t| &t.c, i)));
}
