//! Threads.

use std::io;
use std::time::Duration;

pub use std::thread::{Result, available_parallelism, panicking};

use super::world::{Me, enter, me};

/// As the standard library's.
pub fn sleep(time: Duration) {
    match me() {
        Some(me) => me.sleep(time),
        None => std::thread::sleep(time),
    }
}

/// The end of a thread of a world, also by a panic.
struct End(Me);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn within<T>(child: Option<Me>, body: impl FnOnce() -> T) -> T {
    let Some(me) = child else {
        return body();
    };
    enter(Some(me.clone()));
    me.begin();
    let _end = End(me);
    body()
}

fn over(id: Option<usize>) {
    if let (Some(me), Some(id)) = (me(), id) {
        me.join(id);
    }
}

/// As the standard library's.
#[derive(Debug)]
pub struct JoinHandle<T>(std::thread::JoinHandle<T>, Option<usize>);

impl<T> JoinHandle<T> {
    /// As the standard library's.
    ///
    /// # Errors
    /// The thread's panic.
    pub fn join(self) -> Result<T> {
        over(self.1);
        self.0.join()
    }
}

/// As the standard library's.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T>(std::thread::ScopedJoinHandle<'scope, T>, Option<usize>);

impl<T> ScopedJoinHandle<'_, T> {
    /// As the standard library's.
    ///
    /// # Errors
    /// The thread's panic.
    pub fn join(self) -> Result<T> {
        over(self.1);
        self.0.join()
    }
}

/// As the standard library's.
#[derive(Debug, Default)]
pub struct Builder(String);

impl Builder {
    /// As the standard library's.
    pub fn new() -> Self {
        Self::default()
    }

    /// As the standard library's.
    #[must_use]
    pub fn name(self, name: String) -> Self {
        Self(name)
    }

    /// The threads of a world have the stacks that they get.
    #[must_use]
    pub fn stack_size(self, _size: usize) -> Self {
        self
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let child = me().map(|me| me.child(self.0.clone()));
        let id = child.as_ref().map(Me::id);
        let builder = std::thread::Builder::new().name(self.0);
        Ok(JoinHandle(builder.spawn(move || within(child, body))?, id))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn spawn_scoped<'scope, 'env, T: Send + 'scope>(
        self,
        scope: ScopeRef<'scope, 'env>,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let child = me().map(|me| me.child(self.0.clone()));
        let id = child.as_ref().map(Me::id);
        if let (Some(me), Some(id)) = (me(), id) {
            me.take_into(scope.1, id);
        }
        let builder = std::thread::Builder::new().name(self.0);
        Ok(ScopedJoinHandle(builder.spawn_scoped(scope.0, move || within(child, body))?, id))
    }
}

/// As the standard library's.
///
/// # Panics
/// If the system has no thread.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).expect("the system has a thread")
}

/// A scope, as a closure of [`scope`] has it.
pub type ScopeRef<'scope, 'env> = Scope<'scope, 'env>;

/// As the standard library's, but a copy where that is a reference.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'scope, 'env>(&'scope std::thread::Scope<'scope, 'env>, usize);

impl<'scope> Scope<'scope, '_> {
    /// As the standard library's.
    ///
    /// # Panics
    /// If the system has no thread.
    pub fn spawn<T: Send + 'scope>(
        self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        Builder::new().spawn_scoped(self, body).expect("the system has a thread")
    }
}

/// As the standard library's.
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(ScopeRef<'scope, 'env>) -> T) -> T {
    std::thread::scope(|scope| {
        let number = me().map(|me| me.open_scope());
        let value = body(Scope(scope, number.unwrap_or(0)));
        if let (Some(me), Some(number)) = (me(), number) {
            me.close_scope(number);
        }
        value
    })
}

/// Lets `body`, on another thread while this one waits for it, act for this thread: around what a
/// pool runs.
pub fn carried<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let carried = me();
    move || {
        let before = enter(carried);
        let value = body();
        enter(before);
        value
    }
}
