//! The values of one leaf of the schema, some thousand rows at a time.
//!
//! A leaf has its values and, unless it is there in every row, levels: for each value, or place
//! where one could be, how much of its path is there (definition), and at which list of its path it
//! goes on (repetition; 0 begins a row).

use parquet::basic::Type as Physical;
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::column::writer::{ColumnWriter, get_typed_column_writer_mut};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::kind::is_text;

/// A leaf, by its physical type.
pub(crate) enum Leaf {
    Boolean(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Int96(Typed<Int96Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    Bytes(Typed<ByteArrayType>),
    Fixed(Typed<FixedLenByteArrayType>),
}

/// A value that is there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Integer(i64),
    Old(Int96),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

macro_rules! of_any_type {
    ($leaf:expr, $typed:ident => $what:expr) => {
        match $leaf {
            Leaf::Boolean($typed) => $what,
            Leaf::Int32($typed) => $what,
            Leaf::Int64($typed) => $what,
            Leaf::Int96($typed) => $what,
            Leaf::Float($typed) => $what,
            Leaf::Double($typed) => $what,
            Leaf::Bytes($typed) => $what,
            Leaf::Fixed($typed) => $what,
        }
    };
}

impl Leaf {
    pub(super) fn new(column: ColumnDescPtr) -> Self {
        match column.physical_type() {
            Physical::BOOLEAN => Self::Boolean(Typed::new(column)),
            Physical::INT32 => Self::Int32(Typed::new(column)),
            Physical::INT64 => Self::Int64(Typed::new(column)),
            Physical::INT96 => Self::Int96(Typed::new(column)),
            Physical::FLOAT => Self::Float(Typed::new(column)),
            Physical::DOUBLE => Self::Double(Typed::new(column)),
            Physical::BYTE_ARRAY => Self::Bytes(Typed::new(column)),
            Physical::FIXED_LEN_BYTE_ARRAY => Self::Fixed(Typed::new(column)),
        }
    }

    /// Goes on to the pages of the next row group.
    pub(super) fn open(&mut self, pages: Box<dyn PageReader>) {
        of_any_type!(self, typed => typed.open(pages));
    }

    /// Drops the rows that are there.
    pub(super) fn clear(&mut self) {
        of_any_type!(self, typed => typed.clear());
    }

    /// Passes by this many rows of the row group; returns how many there were.
    pub(super) fn skip(&mut self, rows: usize) -> Result<usize> {
        of_any_type!(self, typed => match &mut typed.reader {
            Some(reader) if rows > 0 => reader.skip_records(rows),
            _ => Ok(0),
        })
    }

    /// Appends this many rows of the row group to those that are there; returns how many there
    /// were.
    pub(super) fn read(&mut self, rows: usize) -> Result<usize> {
        of_any_type!(self, typed => typed.read(rows))
    }

    /// Ends the reading of a batch. Its text must be UTF-8, or this is false.
    pub(super) fn finish(&mut self) -> bool {
        of_any_type!(self, typed => typed.find_places());
        self.is_whole()
    }

    /// Whether all text is UTF-8.
    fn is_whole(&self) -> bool {
        let is_text = |value: &ByteArray| std::str::from_utf8(value.data()).is_ok();
        match self {
            Self::Bytes(typed) if typed.is_text => typed.values.iter().all(is_text),
            _ => true,
        }
    }

    /// Appends the rows that are there to a column chunk of the same type, and returns how many
    /// levels they have.
    pub(crate) fn write(&self, chunk: &mut ColumnWriter<'_>) -> Result<usize> {
        of_any_type!(self, typed => typed.write(chunk))
    }

    /// The value of a row, none if it is null. The leaf must be a column that is not nested.
    pub(super) fn get(&self, row: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Boolean(typed) => Value::Boolean(*typed.get(row)?),
            Self::Int32(typed) => Value::Integer((*typed.get(row)?).into()),
            Self::Int64(typed) => Value::Integer(*typed.get(row)?),
            Self::Int96(typed) => Value::Old(*typed.get(row)?),
            Self::Float(typed) => Value::Float(*typed.get(row)?),
            Self::Double(typed) => Value::Double(*typed.get(row)?),
            Self::Bytes(typed) => Value::Bytes(typed.get(row)?.data()),
            Self::Fixed(typed) => Value::Bytes(typed.get(row)?.data()),
        })
    }
}

/// A leaf of one physical type.
pub(crate) struct Typed<T: DataType> {
    column: ColumnDescPtr,
    is_text: bool,
    reader: Option<ColumnReaderImpl<T>>,
    /// Both are empty if their greatest level is 0.
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Vec<T::T>,
    /// Where the value of each row is, if rows can be null and have one value at most.
    places: Vec<Option<u32>>,
}

impl<T: DataType> Typed<T> {
    fn new(column: ColumnDescPtr) -> Self {
        Self {
            is_text: is_text(column.self_type()),
            column,
            reader: None,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
        }
    }

    fn open(&mut self, pages: Box<dyn PageReader>) {
        let reader = get_column_reader(self.column.clone(), pages);
        self.reader = Some(get_typed_column_reader(reader));
    }

    fn clear(&mut self) {
        self.definitions.clear();
        self.repetitions.clear();
        self.values.clear();
    }

    fn read(&mut self, rows: usize) -> Result<usize> {
        let Some(reader) = &mut self.reader else {
            return Ok(0);
        };
        let (read, _, _) = reader.read_records(
            rows,
            Some(&mut self.definitions),
            Some(&mut self.repetitions),
            &mut self.values,
        )?;
        Ok(read)
    }

    fn find_places(&mut self) {
        self.places.clear();
        if self.repetitions.is_empty() {
            let most = self.column.max_def_level();
            let mut next = 0;
            self.places.extend(self.definitions.iter().map(|&level| {
                (level == most).then(|| {
                    next += 1;
                    next - 1
                })
            }));
        }
    }

    fn get(&self, row: usize) -> Option<&T::T> {
        match self.column.max_def_level() {
            0 => self.values.get(row),
            _ => self.values.get((*self.places.get(row)?)? as usize),
        }
    }

    fn write(&self, chunk: &mut ColumnWriter<'_>) -> Result<usize> {
        let levels = |most, levels| (most > 0).then_some(levels);
        get_typed_column_writer_mut::<T>(chunk).write_batch(
            &self.values,
            levels(self.column.max_def_level(), &self.definitions[..]),
            levels(self.column.max_rep_level(), &self.repetitions[..]),
        )?;
        Ok(self.values.len().max(self.definitions.len()))
    }
}
