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
cot semi-honest regular half r14 20011 c27b4f9f1000f75a277132ef0e9bc48e abba8a275ad979afb345a57ed08cdcaf
cot semi-honest regular ggm r14 20011 c695baae15468e3ff8e9f52111b78813 8f1c30434174176ac6ece74a52d962a0
cot semi-honest uniform half u14 20011 79a256d5d3f1d341a0090aa388f682aa 1b58932bf4159a5117e8a4209fd2eddf
cot semi-honest uniform ggm u14 20011 bdedbbf274f0813cb28c0146427bcc67 b28545d59cf446842c03f06b2bb710b9
cot malicious regular half r14 20011 6767e40db5dc16a900c194e0fccb8d6e e72ed5991ad737dacf49b340c3538732
cot malicious regular ggm r14 20011 5a0b1ed182dbc891a309c33809b7d1df 5de52c9736ab1cb05d30f4c714b07c14
cot malicious uniform half u14 20011 0fbc6eaab2ac1bfac76656d6cb406329 2fa343faa93246f7c87ca7687e156bea
cot malicious uniform ggm u14 20011 9fc46aa90f36787af6eaa3f5926b0400 73749c13fab52ddfdb5f4ee1dc5a744b
cot malicious regular half b10 1000000 f85033f2ca71f1a3cd8661fb629cd4b9 b1dd7c3d82f90c55a94b12f7ed0e431b
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
fp61 semi-honest regular half r14 20011 3eb262aaf8ee29e8fb74a05eef4c60a9 ba193549879e397fde780a0a42a5af10
fp61 semi-honest regular ggm r14 20011 e178ae6a3ddbd0f2d34ec40b106c2c5c 3ba91b3e505e76c8796caf8e5ec1c51e
fp61 semi-honest uniform half u14 20011 a5226f791d2ca4cf53f228436986821a ef4a1c33c3147da661a1b36d52607770
fp61 semi-honest uniform ggm u14 20011 46e7a9d31b0a3b493ecd36c1bc670356 1471e582fe7efcbb0867dabfa6ecc83e
fp61 malicious regular half r14 20011 a49d8b011903fa31273b0988c53654b0 d0e4b9f8b1723f1d9b57eb1c97415412
fp61 malicious regular ggm r14 20011 b51f97d8df6c1e843eb258137856aaf0 047b39f3ff7bab49ff70b32b813b0e13
fp61 malicious uniform half u14 20011 70e2b31b78ff013ca38d1bb478b5959a f48ef6a64a94783f5e589ccb4b626b36
fp61 malicious uniform ggm u14 20011 13241e6b9d39addd1f8cb704835c6a60 db66e1d47110200867fad0155bbb08bf
fp61 malicious regular half primal 200000 58ed7fb61425a0727ca27248cc417381 9d46f281e2af03070bf531d3c746f96e
fp61 semi-honest uniform ggm paper80 16384 87812faef97171c96e0aa45a686b8abd c57575b0517d1cb200100bb61d0b2215
z64 semi-honest regular half r14 20011 7d26aeb810b950371d4aa1148cabca8d aad4e434131e563a50c862171c38f97e
z64 semi-honest regular ggm r14 20011 015dc9643a59cc0407e75c4f6277108c cdf103fff5a7923021f9409d7b46cc51
z64 semi-honest uniform half u14 20011 c57e180e510d2bb3cf4d1c2edea0bd01 07478a6d9c21cb900acdfe26e5c85d62
gf128 semi-honest regular half r14 20011 086c15a21c9ecfed7c6c6c4b3cdae561 ed655715c9b2d907c24746240d96105a
gf128 malicious regular half packed4 3000 089e5eadcf32b2a3a9153ecc2a7f681f 97b4a6d544495ec24815a822511a9cc6
gf128 malicious regular half r14 20011 936e9196fe69c70135f6232e70286732 173e7aa1b8163454ca6f162fcca56045
gf128 malicious regular ggm r14 20011 4d6c75aa1b9de09b58d3ae34fd078268 81798e03c31e44b019ba0b68fbc38b1f
gf128 malicious uniform half u14 20011 43dc93348195fe2a738c3bb62dd13350 aace9cea813751e4f05314d4bbcbf54e
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
