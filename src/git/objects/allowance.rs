//! Limits what is read of objects in this process.

use std::cell::Cell;

/// The largest object in bytes that is held in memory.
pub(in crate::git) const LIMIT: u64 = 16 << 20;

/// What a reader may still do before git is the faster way.
pub(in crate::git) struct Allowance(Cell<u64>);

impl Allowance {
    const BYTES: u64 = 64 << 20;
    /// What an object costs beside its bytes.
    const OBJECT: u64 = 32 << 10;

    pub(in crate::git) fn new() -> Self {
        Self(Cell::new(Self::BYTES))
    }

    /// An allowance of so many bytes, for a reader that only git could replace at a much higher cost.
    pub(in crate::git) fn of(bytes: u64) -> Self {
        Self(Cell::new(bytes))
    }

    /// How many bytes are left.
    pub(in crate::git) fn left(&self) -> u64 {
        self.0.get()
    }

    /// Takes what an object of `size` bytes costs that is held in memory. `false` if this is too much.
    pub(in crate::git) fn take(&self, size: u64) -> bool {
        size <= LIMIT && self.spend(size)
    }

    /// Takes what an object of `size` bytes costs.
    pub(in crate::git) fn spend(&self, size: u64) -> bool {
        let left = self.0.get().checked_sub(size.saturating_add(Self::OBJECT));
        self.0.set(left.unwrap_or_default());
        left.is_some()
    }
}
