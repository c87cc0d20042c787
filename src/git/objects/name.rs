//! Computes object ids.

use crate::git::bytes::hex;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The running hash of an object.
pub(crate) enum ObjectName {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl ObjectName {
    /// Starts with the header of an object of `size` bytes. The number of digits in an id selects the hash
    /// function.
    pub(crate) fn of(kind: &str, hex_length: usize, size: u64) -> Self {
        let header = format!("{kind} {size}\0");
        if hex_length == 64 {
            Self::Sha256(Sha256::new_with_prefix(header))
        } else {
            Self::Sha1(Sha1::new_with_prefix(header))
        }
    }

    pub(crate) fn update(&mut self, content: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(content),
            Self::Sha256(hasher) => hasher.update(content),
        }
    }

    pub(crate) fn hex(self) -> String {
        match self {
            Self::Sha1(hasher) => hex(&hasher.finalize()),
            Self::Sha256(hasher) => hex(&hasher.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_gives() {
        let name = |length| {
            let mut name = ObjectName::of("blob", length, 5);
            name.update(b"text\n");
            name.hex()
        };
        assert_eq!(name(40), "8e27be7d6154a1f68ea9160ef0e18691d20560dc");
        assert_eq!(
            name(64),
            "b3266f5722b0701cf93ece47c374b0513e8eb55d41b19c767833040319c82187"
        );
    }
}
