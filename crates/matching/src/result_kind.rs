//! The kinds of results: rows, a number, or shares.

/// The kind of result that the sides of a match get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// The matching rows.
    #[default]
    Rows,
    /// The number of common distinct keys.
    Count,
    /// The sum of a column over the common keys: the column, at the side that has it.
    Sum(Option<String>),
    /// The same sum, and the number of common keys.
    Mean(Option<String>),
    /// The sum, over the common keys, of the products of a column of the sender and one of the
    /// receiver. Each side has one of them; the names are not compared.
    SumProduct([String; 2]),
    /// Shares of the matching rows and of these columns of this side.
    Shares(Vec<String>),
}

impl ResultKind {
    /// The name on the command line, without columns.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Count => "count",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
            Self::SumProduct(_) => "sum-product",
            Self::Shares(_) => "shares",
        }
    }

    /// From the name, and the columns behind it.
    ///
    /// # Errors
    /// If there is no such result, or it has another number of columns; in words.
    pub fn new(name: &str, columns: Vec<String>) -> Result<Self, String> {
        let count = columns.len();
        let mut columns = columns.into_iter();
        match (name, count) {
            ("rows", 0) => Ok(Self::Rows),
            ("count", 0) => Ok(Self::Count),
            ("sum", 0 | 1) => Ok(Self::Sum(columns.next())),
            ("mean", 0 | 1) => Ok(Self::Mean(columns.next())),
            ("sum-product", 2) => match (columns.next(), columns.next()) {
                (Some(sender), Some(receiver)) => Ok(Self::SumProduct([sender, receiver])),
                _ => unreachable!("there are two"),
            },
            ("shares", _) => Ok(Self::Shares(columns.collect())),
            ("rows" | "count", _) => Err(format!("{name} has no column")),
            ("sum" | "mean", _) => {
                Err(format!("{name} has one column; a name with a comma stands in double quotes"))
            }
            ("sum-product", _) => {
                Err("sum-product has two columns, that of the sender and that of the receiver: \
                 sum-product=PRICE,QUANTITY"
                    .to_owned())
            }
            _ => {
                Err("choose rows, count, sum=COL, mean=COL, sum-product=COL,COL or shares"
                    .to_owned())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_number_of_columns() {
        for (name, columns) in [
            ("rows", 0..=0),
            ("count", 0..=0),
            ("sum", 0..=1),
            ("mean", 0..=1),
            ("sum-product", 2..=2),
            ("shares", 0..=3),
            ("total", 9..=9),
        ] {
            for count in 0..=3 {
                let given = (0..count).map(|i| format!("c{i}")).collect();
                let what = ResultKind::new(name, given);
                assert_eq!(what.is_ok(), columns.contains(&count), "{name} {count}");
                if let Ok(what) = what {
                    assert_eq!(what.name(), name);
                }
            }
        }
    }
}
