//! What kind of file a name stands for.

use std::path::Path;

use crate::error::{Error, Problem};

/// The kinds of files, told apart by the extension of the name, in any case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.csv` and `.txt`: text with a header, a comma between the fields where nothing else is said.
    Csv,
    /// `.tsv`: text with a header, a tab between the fields where nothing else is said.
    Tsv,
    /// `.parquet`: Apache Parquet.
    Parquet,
}

impl Format {
    /// The kind of file that `path` is by its name; the file need not exist.
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

    /// What stands between two fields where nothing else is said.
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
    fn the_extension_says_what_a_file_is() {
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
