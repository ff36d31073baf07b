//! Columns of another type of the same shape: seconds as milliseconds, at any depth.

#[cfg(feature = "columnar")]
use std::mem::discriminant;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, make_array};
use arrow_schema::TimeUnit::{Microsecond, Millisecond, Second};
use arrow_schema::{ArrowError, DataType as D, Field, FieldRef};

/// A type with `map` of each type of the columns in it, if it is nested or has a dictionary.
fn with_parts(kind: &D, map: &mut dyn FnMut(&D) -> D) -> D {
    let mut part = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::clone(field).with_data_type(map(field.data_type())))
    };
    match kind {
        D::List(field) => D::List(part(field)),
        D::LargeList(field) => D::LargeList(part(field)),
        D::FixedSizeList(field, length) => D::FixedSizeList(part(field), *length),
        D::Map(field, sorted) => D::Map(part(field), *sorted),
        D::Struct(fields) => D::Struct(fields.iter().map(part).collect()),
        D::Dictionary(keys, values) => D::Dictionary(keys.clone(), map(values).into()),
        other => other.clone(),
    }
}

fn parts(kind: &D) -> Vec<D> {
    let mut parts = Vec::new();
    with_parts(kind, &mut |part| {
        parts.push(part.clone());
        part.clone()
    });
    parts
}

/// Whether a type is, or has in it, one of which the library for Parquet writes no value.
#[cfg(feature = "columnar")]
pub(crate) fn has_no_form(kind: &D) -> bool {
    *kind == D::Interval(arrow_schema::IntervalUnit::MonthDayNano)
        || parts(kind).iter().any(has_no_form)
}

/// The type of a column in a format that has neither seconds nor dates in milliseconds.
pub(crate) fn without_seconds(kind: &D) -> D {
    match kind {
        D::Timestamp(Second, zone) => D::Timestamp(Millisecond, zone.clone()),
        D::Time32(Second) => D::Time32(Millisecond),
        D::Date64 => D::Date32,
        other => with_parts(other, &mut without_seconds),
    }
}

/// Whether [`retyped`] makes columns of `kind` from those of `found`: nested ones have the same
/// parts, whose names count in a struct only.
#[cfg(feature = "columnar")]
pub(crate) fn has_shape(kind: &D, found: &D) -> bool {
    let (kinds, others) = (parts(kind), parts(found));
    let same_parts = || {
        let shapes = || kinds.iter().zip(&others).all(|(a, b)| has_shape(a, b));
        discriminant(kind) == discriminant(found) && kinds.len() == others.len() && shapes()
    };
    match (kind, found) {
        // Old files do not say that their timestamps are in UTC.
        (D::Timestamp(_, zone), D::Timestamp(Microsecond | Millisecond, other)) => {
            zone.is_some() || other.is_none()
        }
        (D::Struct(fields), D::Struct(others)) => {
            fields.iter().map(|a| a.name()).eq(others.iter().map(|b| b.name())) && same_parts()
        }
        _ if kinds.is_empty() => kind == found,
        _ => same_parts(),
    }
}

/// The column as one of `kind`, of the same shape; none if a time is beyond `kind`. The last and
/// the first time stay so: they stand for infinity.
pub(crate) fn retyped(column: &ArrayRef, kind: &D) -> Result<Option<ArrayRef>, ArrowError> {
    const MOST: i64 = i64::MAX;
    const LEAST: i64 = -MOST;
    let times = |time| match time {
        MOST | i64::MIN..=LEAST => Some(time),
        _ => time.checked_mul(1000),
    };
    let days = |millis: i64| match millis {
        MOST => Some(i32::MAX),
        i64::MIN..=LEAST => Some(i32::MIN),
        _ => i32::try_from(crate::cell::day_of(millis)).ok(),
    };
    Ok(match (column.data_type(), kind) {
        (found, kind) if found == kind => Some(Arc::clone(column)),
        (D::Timestamp(Second, _), D::Timestamp(Millisecond, _)) => {
            mapped::<TimestampSecondType, TimestampMillisecondType>(column, kind, times)
        }
        (D::Timestamp(Millisecond, _), D::Timestamp(Microsecond, _)) => {
            mapped::<TimestampMillisecondType, TimestampMicrosecondType>(column, kind, times)
        }
        (D::Time32(Second), D::Time32(Millisecond)) => {
            let times = |time: i32| time.checked_mul(1000);
            mapped::<Time32SecondType, Time32MillisecondType>(column, kind, times)
        }
        (D::Date64, D::Date32) => mapped::<Date64Type, Date32Type>(column, kind, days),
        (_, kind) => {
            let data = column.to_data();
            let mut children = Vec::with_capacity(data.child_data().len());
            for (child, kind) in data.child_data().iter().zip(parts(kind)) {
                let Some(child) = retyped(&make_array(child.clone()), &kind)? else {
                    return Ok(None);
                };
                children.push(child.to_data());
            }
            let data = data.into_builder().data_type(kind.clone()).child_data(children);
            Some(make_array(data.build()?))
        }
    })
}

/// The column with each value converted; none if one cannot be.
fn mapped<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    column: &ArrayRef,
    kind: &D,
    convert: impl Fn(A::Native) -> Option<B::Native>,
) -> Option<ArrayRef> {
    let values = column.as_primitive::<A>();
    let converted = values.try_unary::<_, B, ()>(|value| convert(value).ok_or(()));
    let converted: PrimitiveArray<B> = converted.ok()?;
    Some(Arc::new(converted.with_data_type(kind.clone())))
}
