//! What seeded runs put on the wire: a change of any byte shows here, and the row says which protocol made it.
//!
//! The hashes are BLAKE3 over all bytes that one party sent. When the wire was to change, the failing test prints the
//! table as it now is.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{Channel, SessionId, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Kind, Plan, Trees, Wishes, cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

/// The kind of correlation; security, noise and trees; the set of the last round (`-`: chosen by cost, `ferret` and
/// `paper80`: the plan of that paper; `dual`: low communication); how many are drawn, of a stream where the set is named; the first 16 bytes of the
/// hash of what the sender sent, and of what the receiver sent.
const TABLE: &str = "
cot semi-honest regular half softspoken4 3000 3173bc309aa1301ae627f52913c2423a 328947d8a2f28641e630564dd295fdf2
cot malicious regular half softspoken4 3000 7b559f8f1931072a945a48fa785affc3 cd748921380d4eacb35d260db9c7b819
cot semi-honest regular half r14 20011 55e8fafa9f4bc80ac93492b7a4f11167 7bcc9e2f6b89cfa8718485c0b4504160
cot semi-honest regular ggm r14 20011 c4f7b77af985d4739d993cb3e073ae7b a16e3dfd64d3dfee9a49a73f9195cf36
cot semi-honest uniform half u14 20011 2208813a2ec67265619743f83ffc3222 7713beda219ede6f2dd270f3b4fe5ceb
cot semi-honest uniform ggm u14 20011 c05a0d811efda24d1baf16a3f5e624d6 0df110e66a7b7d0760bfe4e501f98640
cot malicious regular half r14 20011 5e937dc8387fa81b9c572952ad85ff12 7478f68ecbc01bc5f2b7df8787529b35
cot malicious regular ggm r14 20011 2faea9aa47a32a6dfef3eab857242f7b 875252ba98c05c9193f2184fb7abbd03
cot malicious uniform half u14 20011 9db8884e41b9551a48da70a8a7f892b7 07ffdea4a334cf40f37e6df3b242f2f6
cot malicious uniform ggm u14 20011 84e98b73d88c6c9f69093f61e31990ed 0ba2171b25aa4d37613f94d10f77eeb6
cot malicious regular half b10 1000000 19c772e358541de8f6e917afcd1d9e42 54a14732cd7d4b8f5b6bb4d11ceb0440
cot semi-honest regular half low-communication 20011 4c0d1dc3603ac0b8647bdc8662393875 e6ade69050e99258951729903dab417f
cot malicious regular half low-communication 20011 44a6f4906c752b2b22d96c7904d44a43 7a127d2e9c540764f3e51feee93e7f3e
fp61 semi-honest regular half low-communication 20011 b7a06185238fddcbffe839bc528012fc 7e2f98c3d0fd7a849a46432bbe2f3674
fp61 malicious regular half low-communication 20011 f527065bfa7c9c09446e4414fbfe4b29 f897d42104ab5958016db5d809e310f5
z64 semi-honest regular half low-communication 20011 3b89cb451badcd3d0cfd486a4ef9d374 0063ec361ad8d312a32a4aeff24a92e7
gf128 malicious regular half low-communication 20011 af8dc4a9d02bdd565b57dac388d505d5 f80368573c96edff74732311fab93a03
cot semi-honest regular ggm ferret 1000 bae64c9ce1fe21991d327d54eb16dae4 06661a1de7ca056dce9be212906248a4
cot malicious regular ggm ferret 1000 d13b4611437449117ca47108b42aaf0d 0fd3dc6d4708e2af8ad3b38d6afaa16e
cot malicious uniform ggm ferret 1000 b078dddfe457cbe8345d53d58a92db8e 5db7a92215089c15d49f28294752afc4
fp61 semi-honest regular half gilboa 3000 8292901c59c18ef4138ffbe0d6268d32 936765666e13ed59e4f7bf1a3e0126fd
fp61 malicious regular half gilboa 3000 896e9e82c67411e1bfc646f27112162e f2e20d0e8e55af5d94e33bd2442a8980
fp61 semi-honest regular half r14 20011 ff97ec9a8cba2f90d1975e0f8960e35f b16a194ae2be1db1d6317df894c260f3
fp61 semi-honest regular ggm r14 20011 4ad3fe33028578da5d9a7aebc279d08f 8be882bb5a7005fb1acb8bed04697b61
fp61 semi-honest uniform half u14 20011 a5226f791d2ca4cf53f228436986821a ef4a1c33c3147da661a1b36d52607770
fp61 semi-honest uniform ggm u14 20011 46e7a9d31b0a3b493ecd36c1bc670356 1471e582fe7efcbb0867dabfa6ecc83e
fp61 malicious regular half r14 20011 a49d8b011903fa31273b0988c53654b0 d0e4b9f8b1723f1d9b57eb1c97415412
fp61 malicious regular ggm r14 20011 b51f97d8df6c1e843eb258137856aaf0 047b39f3ff7bab49ff70b32b813b0e13
fp61 malicious uniform half u14 20011 70e2b31b78ff013ca38d1bb478b5959a f48ef6a64a94783f5e589ccb4b626b36
fp61 malicious uniform ggm u14 20011 13241e6b9d39addd1f8cb704835c6a60 db66e1d47110200867fad0155bbb08bf
fp61 malicious regular half primal 200000 fcd2b0d1e2bf7379dac405914433ec76 5e47402a0b61c17852ff9485cd200e4d
fp61 semi-honest uniform ggm paper80 16384 87812faef97171c96e0aa45a686b8abd c57575b0517d1cb200100bb61d0b2215
z64 semi-honest regular half r14 20011 a2849d64b7ab2748e911c7d87070d6f4 93a0e798df2ec6efb7aefeaa06aea355
z64 semi-honest regular ggm r14 20011 034330e8554f6bc9254fe8e7b60c509d 0c2dc27554af906b6b533bb400bcaf1d
z64 semi-honest uniform half u14 20011 c57e180e510d2bb3cf4d1c2edea0bd01 07478a6d9c21cb900acdfe26e5c85d62
gf128 semi-honest regular half r14 20011 de5eadc8a0e67c72eb07ea848f85ad7a 55f906107460934c76cace98fa2a54da
gf128 malicious regular half packed4 3000 089e5eadcf32b2a3a9153ecc2a7f681f 97b4a6d544495ec24815a822511a9cc6
gf128 malicious regular half r14 20011 6480bad898d97e16036eb0de4d4f647c 9432ce7981df9f3cf1915d318c74a266
gf128 malicious regular ggm r14 20011 7c02f20330c6fcff2bf81f429a357412 356ca060d69b54bc3c2e438ca27a6f0e
gf128 malicious uniform half u14 20011 14c24acc905355bf548b501bd0f31909 116f841cbb03b833718deafeae0d62a9
";

const SESSION: SessionId = SessionId::from_bytes([5; 32]);

/// The plan that the first words of a row name, and how many correlations are drawn.
fn plan(words: &[&str]) -> (Plan, usize) {
    let &[kind, security, noise, trees, set, n] = words else {
        panic!("a row has eight words");
    };
    let n = n.parse().unwrap();
    let kind = match kind {
        "cot" => Kind::Cot,
        "fp61" => Kind::Vole(Fp61::FIELD),
        "z64" => Kind::Vole(Z64::FIELD),
        _ => Kind::Vole(Gf128::FIELD),
    };
    let (security, noise) = (security.parse().unwrap(), noise.parse().unwrap());
    let plan = match set {
        "ferret" => Plan::ferret(Some(n), noise, security),
        "paper80" => Plan::paper80(kind.field(), n).unwrap(),
        _ => {
            let protocol = set.parse().ok();
            let wishes = Wishes {
                total: protocol.and(Some(n)),
                noise,
                security,
                trees: if trees == "half" {
                    Trees::Half
                } else {
                    Trees::Ggm
                },
                protocol: protocol.unwrap_or_default(),
                set: protocol.is_none().then_some(set),
                ..Wishes::default()
            };
            Plan::new(kind, &wishes).unwrap()
        }
    };
    assert_eq!(plan.trees().to_string(), trees);
    (plan, n as usize)
}

/// The hashes of one run.
fn hashes(words: &[&str]) -> (String, String) {
    let (plan, n) = plan(words);
    match words[0] {
        "cot" => recorded(
            |rng, channel| {
                let mut sender = cot::Sender::setup(&plan, None, SESSION, rng, channel).unwrap();
                sender.extend(&mut vec![Block::ZERO; n], channel).unwrap();
            },
            |rng, channel| {
                let mut receiver = cot::Receiver::setup(&plan, SESSION, rng, channel).unwrap();
                let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
                receiver.extend(&mut u, &mut w, channel).unwrap();
            },
        ),
        "fp61" => of_vole::<Fp61>(&plan, n),
        "z64" => of_vole::<Z64>(&plan, n),
        _ => of_vole::<Gf128>(&plan, n),
    }
}

fn of_vole<R: VoleRing>(plan: &Plan, n: usize) -> (String, String) {
    recorded(
        |rng, channel| {
            let mut sender = vole::Sender::<R>::setup(plan, SESSION, rng, channel).unwrap();
            let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
            sender.extend(&mut u, &mut v, channel).unwrap();
        },
        |rng, channel| {
            let mut receiver =
                vole::Receiver::<R>::setup(plan, None, SESSION, rng, channel).unwrap();
            receiver.extend(&mut vec![R::ZERO; n], channel).unwrap();
        },
    )
}

/// The hash of what each of the parties sent; they have the seeds 1 and 2.
fn recorded(
    sender: impl FnOnce(Prg, &mut Channel) + Send,
    receiver: impl FnOnce(Prg, &mut Channel) + Send,
) -> (String, String) {
    let hash = |channel: &Channel| -> String {
        let sent = channel.transcript().unwrap().sent;
        sent[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    run_two_parties(
        |channel| {
            channel.record_transcript();
            sender(Prg::new(Block::from(1)), channel);
            hash(channel)
        },
        |channel| {
            channel.record_transcript();
            receiver(Prg::new(Block::from(2)), channel);
            hash(channel)
        },
    )
}

#[test]
fn the_wire_is_as_it_was() {
    let mut now = "\n".to_owned();
    for row in TABLE.lines().skip(1) {
        let words: Vec<_> = row.split(' ').collect();
        let (sent, received) = hashes(&words[..6]);
        now += &format!("{} {sent} {received}\n", words[..6].join(" "));
    }
    let differ: Vec<_> = TABLE
        .lines()
        .zip(now.lines())
        .filter(|(old, new)| old != new)
        .collect();
    assert!(
        now == TABLE,
        "{} rows have changed; the table of what is sent now:{now}",
        differ.len()
    );
}
