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
cot semi-honest regular ggm r14 20011 18172b6af9f9f17c11e0c1a8464483b5 ba6124aeeae1db1345272481f11d9543
cot semi-honest uniform half u14 20011 16a4161fecca7f623bd2ac3276528ffc c7717484c9da141fc6a7be22ae8e5278
cot semi-honest uniform ggm u14 20011 f6af085a92057127c6668ab61ce029cd 586dc1bcf5f2352ebf2579f44ac8db53
cot malicious regular half r14 20011 6767e40db5dc16a900c194e0fccb8d6e 4707696d194ccceaa15ac3cdb1a79095
cot malicious regular ggm r14 20011 f220521c2497b2743a75f7c7a26683bc b25891ae8f2e78ec5bb278b458a1db2d
cot malicious uniform half u14 20011 3836a80abf848c5402c093449d81b2ec 8a886f3b27730b1d4787d52c132b61ca
cot malicious uniform ggm u14 20011 0fbb1a708d57a41f5fec7fe2479dd9c1 bc3f8620f6ddf5c9c9aba2dc04f69121
cot malicious regular half b10 1000000 99719cc34313736b2e9331dbbecde107 692cb16e880101c40c79d26c1c834639
cot semi-honest regular half low-communication 20011 a0d878650db27c1101c431b8f22c3d25 a4cdfc121c4d5ba3d47a5d93f580f93a
cot malicious regular half low-communication 20011 44a6f4906c752b2b22d96c7904d44a43 6693bc4862f7316534e31d072f8f231c
fp61 semi-honest regular half low-communication 20011 7c8acc964629a8a4f524b796a3cb6abd bcab6ebf7a538a0692eb534a1c86d025
fp61 malicious regular half low-communication 20011 7a67435471f47ecf35670506e2d8dfab 9eef3d8380d8c1d1ec6b1c74bd36ef24
z64 semi-honest regular half low-communication 20011 e629d98d0de500162b89bba4e2e9df63 67c70ed52c74a0feb6c22c795b9a6748
gf128 malicious regular half low-communication 20011 0d15c0dd1bdcd1ce71d2c5e8d0c02294 edd898d1d14f8f22e3fa4d9f14ae9d79
cot semi-honest regular ggm ferret 1000 95caf28ea1bc75c69a611f1c035f364a 5c90b1bf3af43a5acf1c322cd18d9bcd
cot malicious regular ggm ferret 1000 57d8a1385320b017e0862eb694d4ddf6 db913d9e3a78b4ec614f3110a2d544f7
cot malicious uniform ggm ferret 1000 a1ddfad2335182ac9a4be9376160745c 1c60320ab902d5b5f9165e2cc1a77a2b
fp61 semi-honest regular half gilboa 3000 8292901c59c18ef4138ffbe0d6268d32 936765666e13ed59e4f7bf1a3e0126fd
fp61 malicious regular half gilboa 3000 896e9e82c67411e1bfc646f27112162e f2e20d0e8e55af5d94e33bd2442a8980
fp61 semi-honest regular half r14 20011 8d14873c280847d2114d2208abd23af8 7b2c63f120636cb72550c8b7ce36cad8
fp61 semi-honest regular ggm r14 20011 35a1b05c7ad6842a8c0a6eedaf41f6c6 1fcab2d3dc2adb2be8d26017204c7e30
fp61 semi-honest uniform half u14 20011 23693056701779120e35eace6d2244e8 079b92c5bf2db23fa7189d179d8fac59
fp61 semi-honest uniform ggm u14 20011 3526b077fabe8913e8571d892f88d813 02891ce5b7a18f5406ec21261c02bbcc
fp61 malicious regular half r14 20011 f8e4016ce4e827ef75d2fdb60d1a2c51 8d4822868d5fcfabff00080d1c3a50c9
fp61 malicious regular ggm r14 20011 e04d24e8565b6ffccc47d5d153e0c454 0946472d71b01354b342214af965d3d3
fp61 malicious uniform half u14 20011 47279efc59296db0c6081a746db64e82 15568185beb0fbb2e22d03ffc7227633
fp61 malicious uniform ggm u14 20011 89291be4ea8083c3a2b63d4fc709c23e 206849ec69456190049e13c9ef167952
fp61 malicious regular half primal 200000 932ce718c64ef582f2680ac8e031be2f 13102a815f454b480af1933c831cb709
fp61 semi-honest uniform ggm paper80 16384 0fa549dbc235e8742ca3e792409165e0 ed1d5a693c83b1b542190b6f7b72d83b
z64 semi-honest regular half r14 20011 90f6fb17a7b5314fe8dad53b7ebd8b44 9c84ea0da3df94685b43a974a852f131
z64 semi-honest regular ggm r14 20011 6932a34e4796f4087a6dab9a159417ea b004121ece316ef07044394f1fc3eb7d
z64 semi-honest uniform half u14 20011 cf8f8b4952204b146ae807a7b28476bb e66da84c01a50c87165689e5ab7e78fa
gf128 semi-honest regular half r14 20011 c1dda58d6891a6fd11dfae7459760f8f ae5a954d5a0ed0850b53accb0cfcf452
gf128 malicious regular half packed4 3000 0fc05789b6b7faea29f210eb94beefb7 97b4a6d544495ec24815a822511a9cc6
gf128 malicious regular half r14 20011 14f2d36cf3421103e0ff4ae055df8062 239ad9191f23ea71b09c411f96715e2c
gf128 malicious regular ggm r14 20011 7a2d3410fba9263e96468d43f2216e6d 9cdc16d67f0cc0e393d4c87ea462bf75
gf128 malicious uniform half u14 20011 d696a0e1d8281152b4b1351c891f5205 101cdc9eb6765f9b78a8ba78ff220c1a
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
