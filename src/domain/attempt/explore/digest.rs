//! A digest that tells the states of an exploration apart.

use std::hash::{BuildHasherDefault, Hasher};

/// The 128-bit FNV-1a digest, word by word instead of byte by byte. A state is hashed in a hundred small parts,
/// for which other digests take several times as long when they are built without optimisation.
pub(crate) struct Digest(u128);

/// For maps with such keys.
pub(crate) type BuildDigest = BuildHasherDefault<Digest>;

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Default for Digest {
    fn default() -> Self {
        Self(BASIS)
    }
}

impl Digest {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(PRIME);
    }

    /// The digest of everything that was hashed.
    pub(crate) fn value(&self) -> u128 {
        self.0
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.add(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_u128(&mut self, word: u128) {
        self.add(word as u64);
        self.add((word >> 64) as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }
}
