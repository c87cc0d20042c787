//! Loose objects: kind, size, a NUL byte and the content, deflated in a file.

use crate::git::bytes::hex;
use crate::git::entries::Digest;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Maximum length of a header: a kind, a space, a number of 20 digits and a NUL byte.
const HEADER_LIMIT: usize = 32;
/// Maximum length of what git says in the place of a header: an id, and that there is no such object.
const ANSWER_LIMIT: usize = 80;
const CHUNK: usize = 16 * 1024;
/// git's prefix for an object file that is still being written. `git gc` removes abandoned ones.
const UNFINISHED: &str = "tmp_obj_";

/// The path of a loose object in a store.
pub(crate) fn loose_path(store: &Path, id: &str) -> PathBuf {
    let (fan_out, rest) = id.split_at_checked(2).unwrap_or((id, ""));
    store.join(fan_out).join(rest)
}

/// The id of an object.
pub(crate) fn object_id(kind: &str, content: &[u8], hex_length: usize) -> String {
    let mut name = ObjectName::of(kind, hex_length, content.len() as u64);
    name.update(content);
    name.hex()
}

/// Writes the object with this id into a store. The file may be incomplete after a crash.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_object(store: &Path, id: &str, kind: &str, content: &[u8]) -> io::Result<()> {
    let path = loose_path(store, id);
    let mut deflate = new_object(&path)?;
    write!(deflate, "{kind} {}\0", content.len())?;
    deflate.write_all(content)?;
    let file = deflate.finish()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// A temporary file for the loose object that will be at `path`.
pub(crate) fn new_object(path: &Path) -> io::Result<ZlibEncoder<NamedTempFile>> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir)?;
    let file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(0o444))
        .tempfile_in(dir)?;
    Ok(ZlibEncoder::new(file, Compression::fast()))
}

/// An inflated part of an object.
pub(crate) enum Piece<'a> {
    /// The header including its NUL byte. It comes first, and once.
    Header(&'a [u8]),
    /// A part of the content.
    Content(&'a [u8]),
}

impl Piece<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Header(bytes) | Self::Content(bytes) => bytes,
        }
    }
}

/// Reads an object of at most `limit` bytes to its end and passes its parts on. Returns the digest of its content,
/// or `None` if it is not the object with this id, is larger, or git would not read it.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read_loose(
    mut from: impl BufRead,
    id: &str,
    limit: u64,
    sink: &mut dyn FnMut(Piece<'_>),
) -> io::Result<Option<Digest>> {
    let mut inflate = Decompress::new(true);
    let mut buffer = vec![0; CHUNK];
    let mut object = Incoming::new(id, limit, 0);
    loop {
        let input = from.fill_buf()?;
        let is_end = input.is_empty();
        let flush = if is_end {
            FlushDecompress::Finish
        } else {
            FlushDecompress::None
        };
        let read = inflate.total_in();
        let written = inflate.total_out();
        let Ok(status) = inflate.decompress(input, &mut buffer, flush) else {
            return Ok(None);
        };
        let taken = usize::try_from(inflate.total_in() - read).unwrap_or(usize::MAX);
        let given = usize::try_from(inflate.total_out() - written).unwrap_or(usize::MAX);
        from.consume(taken);
        let is_stuck = taken == 0 && given == 0 && status != Status::StreamEnd;
        let rest = object.take(buffer.get(..given).unwrap_or_default(), sink);
        if is_stuck || rest.is_none_or(|rest| !rest.is_empty()) {
            return Ok(None);
        }
        if status == Status::StreamEnd {
            let has_more = !from.fill_buf()?.is_empty();
            return Ok(object.digest().filter(|_| !has_more));
        }
    }
}

/// The part of an object that was read so far.
pub(crate) struct Incoming<'a> {
    id: &'a str,
    limit: u64,
    /// The byte after the header.
    end: u8,
    header: Vec<u8>,
    content: Option<Content>,
}

struct Content {
    size: u64,
    left: u64,
    name: ObjectName,
    digest: blake3::Hasher,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(id: &'a str, limit: u64, end: u8) -> Self {
        Self {
            id,
            limit,
            end,
            header: Vec::new(),
            content: None,
        }
    }

    /// Accepts bytes: `kind SP size`, the byte after the header, and the content. Returns what comes after that, or
    /// `None` if this is not an object.
    pub(crate) fn take<'b>(
        &mut self,
        mut bytes: &'b [u8],
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> Option<&'b [u8]> {
        if self.content.is_none() {
            let end = memchr::memchr(self.end, bytes);
            let length = end.map_or(bytes.len(), |end| end + 1);
            let (header, rest) = bytes.split_at(length);
            self.header.extend_from_slice(header);
            if self.header.len() > ANSWER_LIMIT {
                return None;
            }
            if end.is_none() {
                return Some(b"");
            }
            self.header.pop();
            let content = Content::of(&self.header, self.id.len())?;
            self.content = Some(content).filter(|content| content.left <= self.limit);
            self.content.as_ref()?;
            self.header.push(0);
            sink(Piece::Header(&self.header));
            bytes = rest;
        }
        let content = self.content.as_mut()?;
        let length = bytes
            .len()
            .min(usize::try_from(content.left).unwrap_or(usize::MAX));
        let (part, rest) = bytes.split_at(length);
        content.left -= part.len() as u64;
        content.name.update(part);
        content.digest.update(part);
        sink(Piece::Content(part));
        Some(rest)
    }

    /// Whether git says that there is no such object.
    pub(crate) fn is_missing(&self) -> bool {
        self.header.ends_with(b" missing")
    }

    /// How many bytes its content has, as far as that is known.
    pub(crate) fn size(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.size)
    }

    /// The digest of the content, if it is whole and matches the id.
    pub(crate) fn digest(self) -> Option<Digest> {
        let content = self.content.filter(|content| content.left == 0)?;
        let is_it = content.name.hex() == self.id;
        is_it.then(|| *content.digest.finalize().as_bytes())
    }
}

impl Content {
    /// Parses `kind SP size`.
    fn of(header: &[u8], hex_length: usize) -> Option<Self> {
        let header = std::str::from_utf8(header)
            .ok()
            .filter(|header| header.len() < HEADER_LIMIT)?;
        let (kind, size) = header.split_once(' ')?;
        let size = size.parse().ok()?;
        let is_kind = ["blob", "tree", "commit", "tag"].contains(&kind);
        is_kind.then(|| Self {
            size,
            left: size,
            name: ObjectName::of(kind, hex_length, size),
            digest: blake3::Hasher::new(),
        })
    }
}

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

    const TEXT: &str = "8e27be7d6154a1f68ea9160ef0e18691d20560dc";

    fn deflated(text: &[u8]) -> Vec<u8> {
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
        deflate.write_all(text).unwrap();
        deflate.finish().unwrap()
    }

    fn read(file: &[u8], id: &str) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let from = io::BufReader::with_capacity(3, file);
        let digest = read_loose(from, id, u64::MAX, &mut |piece| {
            if let Piece::Content(bytes) = piece {
                content.extend_from_slice(bytes);
            }
        })
        .unwrap()?;
        assert_eq!(digest, *blake3::hash(&content).as_bytes());
        Some(content)
    }

    #[test]
    fn the_object_of_an_id_is_read_and_nothing_else() {
        let good = deflated(b"blob 5\0text\n");
        assert_eq!(read(&good, TEXT).unwrap(), b"text\n");
        assert_eq!(read(&good, &"0".repeat(40)), None);
        let long = [b"x".repeat(200_000), b"\n".to_vec()].concat();
        let mut name = ObjectName::of("blob", 64, long.len() as u64);
        name.update(&long);
        let file = deflated(&[b"blob 200001\0".as_slice(), &long].concat());
        assert_eq!(read(&file, &name.hex()), Some(long));
    }

    #[test]
    fn what_is_cut_off_or_followed_by_something_is_no_object() {
        let good = deflated(b"blob 5\0text\n");
        for length in 0..good.len() {
            assert_eq!(read(&good[..length], TEXT), None, "{length}");
        }
        assert_eq!(read(&[good.as_slice(), b"x"].concat(), TEXT), None);
        for bad in [
            b"blob 4\0text\n".as_slice(),
            b"blob 6\0text\n",
            b"blob 5text\n",
            b"blub 5\0text\n",
            b"blob x\0text\n",
            &b"blob ".repeat(20),
            b"",
        ] {
            assert_eq!(read(&deflated(bad), TEXT), None);
        }
    }
}

#[cfg(test)]
mod name_tests {
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
