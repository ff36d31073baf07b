//! Writes initial inputs for the fuzz targets into `fuzz/corpus`: a valid one for each kind of file
//! and protocol.
//!
//! `cargo run -p volery-testing --example fuzz_seeds [FOLDER]`; then `fuzz/shrink` keeps those that
//! reach new code.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../tables/tests/all/table.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "made for tests, which use all of it"
)]
mod table;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use table::{Column, lists, optional, required, strings, table};
use volery_field::{F2, Fp61, Gf128, Ring, Z64};
use volery_primitives::{Block, prg::Prg};
use volery_run::npy::Writer;
use volery_testing::{Side, fuzz, registry};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Named inputs of one target.
type Seeds = Vec<(String, Vec<u8>)>;

fn main() -> Result<()> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = std::env::args_os().nth(1).map_or(beside, PathBuf::from);
    for (target, seeds) in [
        ("handshake", handshake()),
        ("wire", wire()),
        ("csv", csv()),
        ("parquet", parquet()),
        ("npy", npy()?),
        ("identity", identity()),
    ] {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

fn named(name: impl Into<String>, parts: &[&[u8]]) -> (String, Vec<u8>) {
    let name: String = name.into();
    (name.replace([' ', '/', ','], "-"), parts.concat())
}

/// An edit of each kind, in the form of `volery_testing::fuzz`.
const EDITS: [(&str, &[u8]); 10] = [
    ("honest", &[0]),
    ("flip", &[0, 0, 20, 0, 1]),
    ("overwrite", &[0, 1, 13, 0, 4, 255, 255, 255, 255]),
    ("insert", &[0, 2, 40, 0, 2, 7, 7]),
    ("delete", &[0, 3, 12, 0, 5, 0]),
    ("truncate", &[0, 4, 9, 0x80]),
    ("move", &[0, 5, 0, 0, 32, 0, 32, 0]),
    ("fill", &[0, 6, 32, 0, 32, 0, 255]),
    ("repeat", &[0, 7, 12, 0, 7, 0]),
    ("raw", &[1, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
];

fn handshake() -> Seeds {
    let mut seeds: Seeds = EDITS
        .iter()
        .map(|(name, edit)| named(*name, &[&[255], edit]))
        .collect();
    seeds.push(named(
        "http",
        &[&[0, 1, 0, 0], b"HTTP/1.1 400 Bad Request\r\n"],
    ));
    seeds.push(named("byte by byte", &[&[0, 0]]));
    seeds
}

fn identity() -> Seeds {
    let print = "0000-0000-0000-0000-0000-0000-0000-0000-0000";
    let mut seeds = vec![
        named("fingerprint", &[&[0], print.as_bytes()]),
        named("fingerprint in words", &[&[0], "p3XK o0iL lu--".as_bytes()]),
        named(
            "no identity",
            &[
                &[1],
                b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
            ],
        ),
        named("honest", &[&[5, 0, 0]]),
        named("one bit", &[&[5, 1, 200, 0, 1, 0]]),
        named("another bit", &[&[5, 0, 1, 200, 0, 128]]),
        named("cut", &[&[5, 4, 0, 5, 0]]),
        named("cut later", &[&[5, 0, 4, 9, 7]]),
    ];
    for (mode, name) in [(2, "file"), (3, "hello"), (4, "answer")] {
        let edits = EDITS.iter();
        seeds.extend(edits.map(|(edit, bytes)| named(format!("{name} {edit}"), &[&[mode], bytes])));
    }
    seeds
}

fn wire() -> Seeds {
    let mut seeds = Seeds::new();
    for (i, protocol) in registry().iter().enumerate() {
        for side in Side::BOTH {
            let start = fuzz::wire_input(protocol, side);
            // Other tests cover the honest bytes of a protocol; each protocol gets one or two of
            // the edits here.
            for j in [0, 7] {
                let (name, edit) = EDITS[1 + (2 * i + side as usize + j) % (EDITS.len() - 1)];
                let name = format!("{} {side:?} {name}", protocol.name);
                seeds.push(named(name, &[&start, edit]));
            }
        }
    }
    seeds
}

fn csv() -> Seeds {
    let wide = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>()
    };
    let table =
        "id,name,born\n1,Ada,1815-12-10\n2,\"Kurt, \"\"K\"\"\",1906-04-28\n3,Alan,1912-06-23\n";
    vec![
        named("plain", &[&[128, 0, 0, 0, 0, 255], table.as_bytes()]),
        named(
            "typed",
            &[&[128, 0, 2, 0b11_001_101, 0, 5], table.as_bytes()],
        ),
        named("two keys", &[&[0, 0, 1, 0, 0x20, 3], table.as_bytes()]),
        named("to parquet", &[&[0, 0, 1, 0, 4, 255], table.as_bytes()]),
        named("to tabs", &[&[0, 0, 1, 0, 2, 255], table.as_bytes()]),
        named(
            "tabs",
            &[&[128, 0, 0, 0, 1, 255], table.replace(',', "\t").as_bytes()],
        ),
        named(
            "utf-16",
            &[&[0, 129, 0, 0, 0, 255], &[255, 254], &wide(table)],
        ),
        named("latin", &[&[0, 131, 1, 0, 0, 255], b"a,b\nn\xe9,1\n"]),
        named(
            "shift_jis",
            &[&[0, 133, 0, 0, 0, 255], b"a,b\n\x83\x65\x83\x58,1\n"],
        ),
        named(
            "marked",
            &[&[0, 0, 0, 0, 0, 255], b"\xef\xbb\xbfa,b\n1,2\n"],
        ),
        named(
            "quoted mark",
            &[&[0, 0, 0, 0, 0, 255], b"\"\xef\xbb\xbfa\",b\n1,2\n"],
        ),
        named(
            "quoted wide mark",
            &[&[0, 0, 1, 0, 0, 255], b"\"\xff\xfe\",b\n1,2\n"],
        ),
        named("returns", &[&[0, 0, 0, 0, 0, 255], b"\r\na\r1\r\r\n2\n\n"]),
        named(
            "dedup",
            &[&[0, 0, 0, 0, 0x18, 255], b"a,b\n1,2\n1,3\n,4\n2,"],
        ),
        named("open quote", &[&[0, 0, 0, 0, 0, 255], b"a\n\"1\n2"]),
        named("after quote", &[&[0, 0, 0, 0, 0, 255], b"a\n\"1\"2\n"]),
        named("ragged", &[&[0, 0, 0, 0, 0, 255], b"a,b\n1\n"]),
        named("nul", &[&[3, 0, 0, 0, 0, 255], b"a|b\n\0|\"|\"\n"]),
        named("empty fields", &[&[0, 0, 0, 0, 0x10, 255], b"a\n\"\"\nx\n"]),
        named("booleans", &[&[0, 0, 0, 6, 0, 255], b"a\ntrue\nFALSE\n"]),
        named("integers", &[&[0, 0, 0, 5, 8, 255], b"a\n-0\n+7\n007\n"]),
    ]
}

fn stored(columns: &[Column], properties: Option<WriterProperties>) -> Vec<u8> {
    let properties = properties.unwrap_or_default();
    let rows = properties.max_row_group_row_count().unwrap_or(1000);
    table(columns, rows, properties)
}

fn parquet() -> Seeds {
    let text = |n: usize| strings("k", (0..n).map(|i| format!("key {i}")));
    let plain = || {
        WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_dictionary_enabled(false)
    };
    let few = [text(3), required("int64 n", vec![1, -2, i64::MAX])];
    let mut seeds = Seeds::new();
    let mut push =
        |name: &str, options: [u8; 4], file: &[u8]| seeds.push(named(name, &[&options, file]));

    for (name, codec) in [
        ("none", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
        ("lz4", Compression::LZ4_RAW),
    ] {
        let file = stored(&few, Some(plain().set_compression(codec).build()));
        push(name, [1, 0, 0, 255], &file);
    }
    push("default", [0, 0, 4, 255], &stored(&few, None));
    let second = plain()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_dictionary_enabled(true);
    push(
        "version 2",
        [1, 0, 0x38, 5],
        &stored(&few, Some(second.build())),
    );
    let groups = plain()
        .set_max_row_group_row_count(Some(2))
        .set_data_page_row_count_limit(1);
    push(
        "groups",
        [1, 0b101, 0, 255],
        &stored(&[text(5)], Some(groups.build())),
    );

    let words = [Some("a"), None, Some("b"), Some("a")];
    let bytes = [Some(&b"\xff"[..]), None, Some(b""), Some(b"x")];
    let flags = [Some(true), None, Some(false), Some(true)];
    let elements: [Option<&[Option<i32>]>; 4] =
        [Some(&[Some(1)]), None, Some(&[]), Some(&[None, Some(2)])];
    let columns = [
        (
            "dictionary",
            optional(
                "binary c (STRING)",
                words.map(|word| word.map(ByteArray::from)),
            ),
        ),
        (
            "binary",
            optional("binary c", bytes.map(|bytes| bytes.map(ByteArray::from))),
        ),
        (
            "small",
            optional(
                "int32 c (INTEGER(8,true))",
                [Some(1), None, Some(-3), Some(4)],
            ),
        ),
        (
            "unsigned",
            required("int64 c (INTEGER(64,false))", vec![1_i64, 2, -1, 0]),
        ),
        ("boolean", optional("boolean c", flags)),
        (
            "date",
            required("int32 c (DATE)", vec![0, -1, 20_000, i32::MAX]),
        ),
        (
            "time",
            required(
                "int64 c (TIMESTAMP(MILLIS,false))",
                vec![0, -1, 1 << 40, i64::MAX],
            ),
        ),
        (
            "float",
            required("double c", vec![0.5, f64::NAN, f64::INFINITY, -0.0]),
        ),
        ("list", lists("c", &elements)),
    ];
    for (place, (name, column)) in columns.into_iter().enumerate() {
        let properties = plain().set_dictionary_enabled(name == "dictionary");
        let file = stored(&[text(4), column], Some(properties.build()));
        let keys = if place < 6 { 1 << 2 } else { 0 };
        push(name, [keys, 0, 0x33, 255], &file);
    }
    push(
        "no rows",
        [0, 0, 0, 255],
        &stored(&[text(0)], Some(plain().build())),
    );
    seeds
}

/// The file of some elements.
fn array<R: Ring>(elements: &[R]) -> Result<Vec<u8>> {
    let file = tempfile::NamedTempFile::new()?;
    let mut writer = Writer::new(file.reopen()?, elements.len() as u64)?;
    writer.write(elements)?;
    writer.finish()?;
    Ok(fs::read(file.path())?)
}

fn random<R: Ring>(n: usize) -> Vec<R> {
    let mut elements = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::new(n as u128)), &mut elements);
    elements
}

fn npy() -> Result<Seeds> {
    let mut seeds = Seeds::new();
    for n in [0, 1, 9] {
        let file = [
            ("bits", array(&random::<F2>(n))?),
            ("words", array(&random::<Fp61>(n))?),
            ("pairs", array(&random::<Gf128>(n))?),
        ];
        seeds.extend(file.map(|(name, file)| named(format!("{n} {name}"), &[&[0], &file])));
    }
    seeds.push(vole::<Fp61>("fp61", 4, 3)?);
    seeds.push(vole::<Z64>("z64", 5, 8)?);
    seeds.push(vole::<Gf128>("gf128", 6, 1)?);
    let (u, v) = (random::<F2>(9), random::<Gf128>(9));
    let x = Gf128::from_words(&[3, 5]);
    let w: Vec<Gf128> = (0..9)
        .map(|i| v[i] + if u[i] == F2::ONE { x } else { Gf128::ZERO })
        .collect();
    seeds.push(folders(
        "cot",
        7,
        [array(&u)?, array(&v)?, array(&[x])?, array(&w)?],
    ));
    Ok(seeds)
}

fn vole<R: Ring>(name: &str, mode: u8, n: usize) -> Result<(String, Vec<u8>)> {
    let (u, v) = (random::<R>(n), random::<R>(n));
    let x = R::from_words(&[3, 5][..R::BYTES / 8]);
    let w: Vec<R> = (0..n).map(|i| u[i] * x + v[i]).collect();
    Ok(folders(
        name,
        mode,
        [array(&u)?, array(&v)?, array(&[x])?, array(&w)?],
    ))
}

fn folders(name: &str, mode: u8, [u, v, x, w]: [Vec<u8>; 4]) -> (String, Vec<u8>) {
    let lengths = [&u, &v, &x].map(|file| (file.len() as u16).to_le_bytes());
    named(name, &[&[mode], &lengths.concat(), &u, &v, &x, &w])
}
