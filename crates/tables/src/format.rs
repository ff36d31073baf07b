//! File formats and compressions by file name.

use std::path::Path;

use crate::error::{Error, Problem, refuse};

/// The file formats, selected by the extension of the name, in any case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.csv` and `.txt`: text with a header, by default with a comma between the fields.
    Csv,
    /// `.tsv`: text with a header, by default with a tab between the fields.
    Tsv,
    /// `.parquet` and `.parq`: Apache Parquet.
    Parquet,
    /// `.arrow`, `.ipc` and `.feather`: the Arrow IPC file format; `.arrows`: the stream format.
    /// Both are read by any of these names; the file format is written.
    Arrow,
}

/// The compression of a whole text file, by the last extension of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    /// No compression.
    #[default]
    None,
    /// `.gz`: gzip.
    Gzip,
    /// `.zst`: Zstandard.
    Zstd,
}

impl Format {
    /// The format and the compression of `path` by its name; the file need not exist.
    ///
    /// # Errors
    /// If the extension is missing or unknown, or `.gz` or `.zst` and the format is not text.
    pub fn of(path: &Path) -> Result<(Self, Packing), Error> {
        let unknown = || {
            Error::new(
                path,
                refuse(
                    "the name does not say what kind of file this is",
                    "the known names end in .csv, .tsv, .txt (text with a header; also .csv.gz, .csv.zst), .parquet, or .arrow",
                ),
            )
        };
        let packing = Packing::of(path);
        let format = match packing {
            Packing::None => Self::by_extension(path),
            _ => path.file_stem().and_then(|stem| Self::by_extension(stem.as_ref())),
        };
        let format = format.ok_or_else(unknown)?;
        match packing == Packing::None || format.is_text() {
            true => Ok((format, packing)),
            false => Err(Error::new(path, Problem::PackedTable)),
        }
    }

    /// Whether this is a text with a header.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }

    /// The default delimiter between two fields.
    pub(crate) fn delimiter(self) -> u8 {
        match self {
            Self::Tsv => b'\t',
            _ => b',',
        }
    }

    fn by_extension(path: &Path) -> Option<Self> {
        match extension(path).as_str() {
            "csv" | "txt" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "parquet" | "parq" => Some(Self::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }
}

impl Packing {
    /// The compression of `path` by its name.
    pub fn of(path: &Path) -> Self {
        match extension(path).as_str() {
            "gz" => Self::Gzip,
            "zst" => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The format and the compression of a file by its first bytes, where they are those of no text.
pub(crate) fn by_content(start: &[u8]) -> Option<(Option<Format>, Packing)> {
    let kinds: [(&[u8], _, _); 6] = [
        (b"PAR1", Some(Format::Parquet), Packing::None),
        (b"PARE", Some(Format::Parquet), Packing::None),
        (b"ARROW1", Some(Format::Arrow), Packing::None),
        (b"\xff\xff\xff\xff", Some(Format::Arrow), Packing::None),
        (b"\x1f\x8b", None, Packing::Gzip),
        (b"\x28\xb5\x2f\xfd", None, Packing::Zstd),
    ];
    let found = kinds.into_iter().find(|(magic, ..)| start.starts_with(magic));
    found.map(|(_, format, packing)| (format, packing))
}

fn extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extensions_determine_format_and_compression() {
        let of = |name: &str| Format::of(Path::new(name)).ok();
        assert_eq!(of("a.csv"), Some((Format::Csv, Packing::None)));
        assert_eq!(of("a.b/c.TXT"), Some((Format::Csv, Packing::None)));
        assert_eq!(of("a.Tsv"), Some((Format::Tsv, Packing::None)));
        assert_eq!(of("a.csv.parquet"), Some((Format::Parquet, Packing::None)));
        assert_eq!(of("a.csv.GZ"), Some((Format::Csv, Packing::Gzip)));
        assert_eq!(of("a.parq"), Some((Format::Parquet, Packing::None)));
        assert_eq!(of("a.tsv.zst"), Some((Format::Tsv, Packing::Zstd)));
        for name in ["a.arrow", "a.arrows", "a.feather", "a.ipc"] {
            assert_eq!(of(name), Some((Format::Arrow, Packing::None)));
        }
        for name in ["csv", ".csv", "a.xlsx", "a.gz", "a.parquet.gz", "a.", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
