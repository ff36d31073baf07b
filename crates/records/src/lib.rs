//! Tables of records: keys out of CSV and Parquet files, matching rows into new ones.
#![forbid(unsafe_code)]
