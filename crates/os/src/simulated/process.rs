//! The process.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::world::me;

/// A static of which each process has its own, and each program of a world.
pub struct OfProcess<T: 'static> {
    new: fn() -> T,
    own: LazyLock<T>,
    others: Mutex<Option<HashMap<(u64, usize), &'static T>>>,
}

impl<T> OfProcess<T> {
    /// As `LazyLock` of the standard library.
    pub const fn new(new: fn() -> T) -> Self {
        Self { new, own: LazyLock::new(new), others: Mutex::new(None) }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Some(me) = me() else {
            return &self.own;
        };
        let key = (me.world.lock().number, me.program);
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let others = others.get_or_insert_default();
        others.entry(key).or_insert_with(|| Box::leak(Box::new((self.new)())))
    }
}
