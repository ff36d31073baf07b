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
cot semi-honest regular half softspoken4 3000 3173bc309aa1301ae627f52913c2423a 3d44044fb8244c6332ad8eb2f21564cc
cot malicious regular half softspoken4 3000 7b559f8f1931072a945a48fa785affc3 573c5490ee5353c140f468fdc4531dbf
cot semi-honest regular half r14 20011 2bd7b3f8446d43afab9246331e3c912c b7751f7a2eb99be6de2013c9698c39e4
cot semi-honest regular ggm r14 20011 4092620fb23c66cdfcdbdb7336d0f366 ba6124aeeae1db1345272481f11d9543
cot semi-honest uniform half u14 20011 69003ee26f00f4c24f5a5dc2c1af8693 e7f6071b020978ead3ff2fe2e6c1fd0e
cot semi-honest uniform ggm u14 20011 e91174a8f520af8d110ceaf0e30af8fa 36620c7e45958cfe70bd3e3f0a03535f
cot malicious regular half r14 20011 6767e40db5dc16a900c194e0fccb8d6e 4707696d194ccceaa15ac3cdb1a79095
cot malicious regular ggm r14 20011 5a0b1ed182dbc891a309c33809b7d1df cdda795e8d6c217b6305764314729ae4
cot malicious uniform half u14 20011 0fbc6eaab2ac1bfac76656d6cb406329 4bd94bc3bf096909407cc57c312e593a
cot malicious uniform ggm u14 20011 9fc46aa90f36787af6eaa3f5926b0400 26b491eb46c99b65be67e46f556bfbfc
cot malicious regular half b10 1000000 f85033f2ca71f1a3cd8661fb629cd4b9 4445070c8ce03376ca3a70ee7addbdb2
cot semi-honest regular half low-communication 20011 a0d878650db27c1101c431b8f22c3d25 a4cdfc121c4d5ba3d47a5d93f580f93a
cot malicious regular half low-communication 20011 44a6f4906c752b2b22d96c7904d44a43 6693bc4862f7316534e31d072f8f231c
fp61 semi-honest regular half low-communication 20011 7c8acc964629a8a4f524b796a3cb6abd 7e2f98c3d0fd7a849a46432bbe2f3674
fp61 malicious regular half low-communication 20011 97d99730c685eddcbab37515155d1890 7c022fdd9267fdd07df33397ad5dcd39
z64 semi-honest regular half low-communication 20011 e629d98d0de500162b89bba4e2e9df63 0063ec361ad8d312a32a4aeff24a92e7
gf128 malicious regular half low-communication 20011 c7cde65a5127a17928d6136a136cf5cc 46a630773f49b5b77ee40a99753c5412
cot semi-honest regular ggm ferret 1000 bae64c9ce1fe21991d327d54eb16dae4 06661a1de7ca056dce9be212906248a4
cot malicious regular ggm ferret 1000 d13b4611437449117ca47108b42aaf0d f5a813d4d3c2e97a58960c2636833f29
cot malicious uniform ggm ferret 1000 b078dddfe457cbe8345d53d58a92db8e 7842cfebec47b7631c10d3402bbd7484
fp61 semi-honest regular half gilboa 3000 8292901c59c18ef4138ffbe0d6268d32 936765666e13ed59e4f7bf1a3e0126fd
fp61 malicious regular half gilboa 3000 896e9e82c67411e1bfc646f27112162e f2e20d0e8e55af5d94e33bd2442a8980
fp61 semi-honest regular half r14 20011 8d14873c280847d2114d2208abd23af8 ba193549879e397fde780a0a42a5af10
fp61 semi-honest regular ggm r14 20011 35a1b05c7ad6842a8c0a6eedaf41f6c6 3ba91b3e505e76c8796caf8e5ec1c51e
fp61 semi-honest uniform half u14 20011 8da75cfc2710aa24f1e2cac59b20fae7 ef4a1c33c3147da661a1b36d52607770
fp61 semi-honest uniform ggm u14 20011 1430de959f7810f0be1d611f87edbd11 1471e582fe7efcbb0867dabfa6ecc83e
fp61 malicious regular half r14 20011 3e0f999628163da9a2e03cebc2868985 de4966593cdfa1a3585ffb556f802469
fp61 malicious regular ggm r14 20011 6c1c45d14342d80326b107310bdf1806 882cd0ad801ff34272b1358e307e3377
fp61 malicious uniform half u14 20011 ec58d06c3feaded329a4d3b05ac67a08 806da57a57a0337b41f2aba2f1cdec3b
fp61 malicious uniform ggm u14 20011 7e44d5c4f921adce852d4f823c562abc e987b28a42f543e341b4ac06d69a6596
fp61 malicious regular half primal 200000 a7a1134151852046b9582375a9e485a0 042f9582a1726d87e1262817f2ff3fd0
fp61 semi-honest uniform ggm paper80 16384 0fa549dbc235e8742ca3e792409165e0 c57575b0517d1cb200100bb61d0b2215
z64 semi-honest regular half r14 20011 90f6fb17a7b5314fe8dad53b7ebd8b44 aad4e434131e563a50c862171c38f97e
z64 semi-honest regular ggm r14 20011 6932a34e4796f4087a6dab9a159417ea cdf103fff5a7923021f9409d7b46cc51
z64 semi-honest uniform half u14 20011 4fdcc6ddaa95a8ad634004fedc02e816 07478a6d9c21cb900acdfe26e5c85d62
gf128 semi-honest regular half r14 20011 5e9594b9cc7bfe8269507afe930aaeb1 ed655715c9b2d907c24746240d96105a
gf128 malicious regular half packed4 3000 0fc05789b6b7faea29f210eb94beefb7 97b4a6d544495ec24815a822511a9cc6
gf128 malicious regular half r14 20011 779e157d8730568b8bf1c942560271ea 847872dfbbe1bbade861c689510062da
gf128 malicious regular ggm r14 20011 a45bee8fbd932621ff09c2ed92177901 595bd2794fb7a6f87639a46dfbd8a410
gf128 malicious uniform half u14 20011 6b69e3bcc4f4a7c707ec8bca3904577c 8e60c8cb9110a3b700a7e819c4eec139
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
