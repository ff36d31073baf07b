//! The system, or a world for the threads that belong to one.

mod disk;
pub mod fs;
pub mod net;
pub mod process;
pub mod random;
pub mod sync;
pub mod thread;
pub mod time;
pub mod world;

pub use world::call;
