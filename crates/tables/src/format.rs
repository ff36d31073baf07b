//! File formats by file name.

use std::path::Path;

use crate::error::{Error, Problem};

/// The file formats, selected by the extension of the name, in any case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.csv` and `.txt`: text with a header, by default with a comma between the fields.
    Csv,
    /// `.tsv`: text with a header, by default with a tab between the fields.
    Tsv,
    /// `.parquet`: Apache Parquet.
    Parquet,
}

impl Format {
    /// The format of `path` by its name; the file need not exist.
    ///
    /// # Errors
    /// If the extension is missing or unknown.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        match extension.to_ascii_lowercase().as_str() {
            "csv" | "txt" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "parquet" => Ok(Self::Parquet),
            _ => Err(Error::new(path, Problem::UnknownExtension)),
        }
    }

    /// The default delimiter between two fields.
    pub(crate) fn delimiter(self) -> u8 {
        match self {
            Self::Csv | Self::Parquet => b',',
            Self::Tsv => b'\t',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_determines_the_format() {
        let of = |name: &str| Format::of(Path::new(name)).ok();
        assert_eq!(of("a.csv"), Some(Format::Csv));
        assert_eq!(of("a.b/c.TXT"), Some(Format::Csv));
        assert_eq!(of("a.Tsv"), Some(Format::Tsv));
        assert_eq!(of("a.csv.parquet"), Some(Format::Parquet));
        for name in ["csv", ".csv", "a.xlsx", "a.csv.gz", "a.", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
