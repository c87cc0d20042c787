//! Reads objects from packs.
//!
//! No file is mapped into memory: whoever can write to a pack could end this process by truncating it. Nothing
//! that a pack says of itself is relied on, so that reading ends and takes little memory whatever is there.

use crate::git::objects::allowance::Allowance;
use crate::plain_file;
use flate2::bufread::ZlibDecoder;
use git2::ObjectType;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// How many packs are kept open at most. git starts to combine packs when there are more than 50.
const PACKS_LIMIT: usize = 64;
/// The longest chain of differences that is followed. git writes at most 50 unless it is told otherwise.
const CHAIN_LIMIT: usize = 64;
/// The beginning of an index of version 2.
const INDEX_HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Where the ids begin in an index: after its header and 256 counts of ids.
const IDS: u64 = 8 + 256 * 4;
/// An upper limit of what precedes the deflated content of a packed object: kind, size, and offset or id of a base.
const ENTRY_HEADER_LIMIT: usize = 64;

/// The packs of several stores.
pub(in crate::git) struct Packs(Vec<Pack>);

struct Pack {
    index: File,
    objects: File,
}

/// A packed object.
pub(in crate::git) struct Packed<'a> {
    pack: &'a Pack,
    offset: u64,
    id_bytes: usize,
}

/// What precedes the content of a packed object.
struct Entry {
    kind: Kind,
    /// Size of the inflated content.
    size: u64,
    content_at: u64,
}

enum Kind {
    Whole(ObjectType),
    /// The content is the difference to the object at this offset.
    Difference(u64),
}

impl Packs {
    /// Opens the packs of these stores.
    ///
    /// # Errors
    /// When one cannot be opened, or when there are many.
    pub(in crate::git) fn open(stores: &[PathBuf]) -> io::Result<Self> {
        let mut packs = Vec::new();
        for store in stores {
            let entries = match fs::read_dir(store.join("pack")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let path = entry?.path();
                if path.extension() != Some("idx".as_ref()) {
                    continue;
                }
                if packs.len() == PACKS_LIMIT {
                    return Err(malformed());
                }
                packs.push(Pack::open(&path)?);
            }
        }
        Ok(Self(packs))
    }

    /// The object with this id, in binary form, or `None` if no pack has it.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub(in crate::git) fn find(&self, id: &[u8]) -> io::Result<Option<Packed<'_>>> {
        for pack in &self.0 {
            if let Some(offset) = pack.find(id)? {
                let id_bytes = id.len();
                return Ok(Some(Packed {
                    pack,
                    offset,
                    id_bytes,
                }));
            }
        }
        Ok(None)
    }
}

impl Packed<'_> {
    /// Size of the object in bytes according to the pack, of which nothing is verified.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::git) fn size(&self) -> io::Result<u64> {
        let entry = self.pack.entry(self.offset, self.id_bytes)?;
        if let Kind::Whole(_) = entry.kind {
            return Ok(entry.size);
        }
        let mut start = Vec::new();
        self.pack
            .content(&entry)
            .take(ENTRY_HEADER_LIMIT as u64)
            .read_to_end(&mut start)?;
        let mut start = start.as_slice();
        let sizes = varint(&mut start).zip(varint(&mut start));
        sizes.map(|(_, size)| size).ok_or_else(malformed)
    }

    /// Kind and content of the object, which may be another than that of its id.
    ///
    /// # Errors
    /// When it cannot be read, or not within the allowance.
    pub(in crate::git) fn read(&self, allowance: &Allowance) -> io::Result<(ObjectType, Vec<u8>)> {
        let mut differences = Vec::new();
        let mut entry = self.pack.entry(self.offset, self.id_bytes)?;
        let kind = loop {
            match entry.kind {
                Kind::Whole(kind) => break kind,
                Kind::Difference(_) if differences.len() == CHAIN_LIMIT => return Err(malformed()),
                Kind::Difference(base) => {
                    let base = self.pack.entry(base, self.id_bytes)?;
                    differences.push(std::mem::replace(&mut entry, base));
                }
            }
        };
        let mut content = self.pack.inflate(&entry, allowance)?;
        for entry in differences.iter().rev() {
            let difference = self.pack.inflate(entry, allowance)?;
            content = applied(&content, &difference, allowance).ok_or_else(malformed)?;
        }
        Ok((kind, content))
    }
}

impl Pack {
    fn open(index: &Path) -> io::Result<Self> {
        let pack = Self {
            index: plain_file::open(index)?,
            objects: plain_file::open(&index.with_extension("pack"))?,
        };
        let mut header = [0; 8];
        pack.index.read_exact_at(&mut header, 0)?;
        if header == INDEX_HEADER {
            Ok(pack)
        } else {
            Err(malformed())
        }
    }

    /// The offset of the object with this id.
    fn find(&self, id: &[u8]) -> io::Result<Option<u64>> {
        let Some(first) = id.first() else {
            return Ok(None);
        };
        let until = |first: u8| self.number(8 + u64::from(first) * 4);
        let mut low = first.checked_sub(1).map_or(Ok(0), until)?;
        let (mut high, count) = (until(*first)?, until(u8::MAX)?);
        let length = id.len() as u64;
        let mut found = [0; 32];
        let found = found.get_mut(..id.len()).ok_or_else(malformed)?;
        while low < high {
            let middle = low.midpoint(high);
            self.index.read_exact_at(found, IDS + middle * length)?;
            match (*found).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle, count, length).map(Some),
            }
        }
        Ok(None)
    }

    /// The offset of the object at `place` in an index of `count` objects. After the ids are four bytes of checksum
    /// for each, then the offsets, then those offsets that are too large for four bytes.
    fn offset(&self, place: u64, count: u64, id_bytes: u64) -> io::Result<u64> {
        const IS_LARGE: u64 = 1 << 31;
        let offsets = IDS + count * (id_bytes + 4);
        let offset = self.number(offsets + place * 4)?;
        if offset < IS_LARGE {
            return Ok(offset);
        }
        let at = offsets + count * 4 + (offset - IS_LARGE) * 8;
        Ok(self.number(at)? << 32 | self.number(at + 4)?)
    }

    /// Four bytes of the index.
    fn number(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, at)?;
        Ok(u32::from_be_bytes(bytes).into())
    }

    fn entry(&self, offset: u64, id_bytes: usize) -> io::Result<Entry> {
        let mut header = [0; ENTRY_HEADER_LIMIT];
        let read = self.objects.read_at(&mut header, offset)?;
        let mut left = header.get(..read).unwrap_or_default();
        let (kind, size) = kind_and_size(&mut left).ok_or_else(malformed)?;
        let kind = match kind {
            1 => Kind::Whole(ObjectType::Commit),
            2 => Kind::Whole(ObjectType::Tree),
            3 => Kind::Whole(ObjectType::Blob),
            4 => Kind::Whole(ObjectType::Tag),
            6 => {
                let back = distance(&mut left).filter(|back| *back > 0);
                let base = back.and_then(|back| offset.checked_sub(back));
                Kind::Difference(base.ok_or_else(malformed)?)
            }
            7 => {
                let (base, rest) = left.split_at_checked(id_bytes).ok_or_else(malformed)?;
                left = rest;
                Kind::Difference(self.find(base)?.ok_or_else(malformed)?)
            }
            _ => return Err(malformed()),
        };
        let content_at = offset + (read - left.len()) as u64;
        Ok(Entry {
            kind,
            size,
            content_at,
        })
    }

    fn content(&self, entry: &Entry) -> impl Read {
        let from = FileFrom {
            file: &self.objects,
            at: entry.content_at,
        };
        ZlibDecoder::new(BufReader::with_capacity(4096, from))
    }

    fn inflate(&self, entry: &Entry, allowance: &Allowance) -> io::Result<Vec<u8>> {
        if !allowance.take(entry.size) {
            return Err(malformed());
        }
        let mut content = Vec::new();
        self.content(entry)
            .take(entry.size + 1)
            .read_to_end(&mut content)?;
        if content.len() as u64 == entry.size {
            Ok(content)
        } else {
            Err(malformed())
        }
    }
}

/// A file from an offset on.
struct FileFrom<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn next(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Adds seven bits of `byte` to `number`, above the lowest `shift` bits.
fn with_bits(number: u64, byte: u8, shift: u32) -> Option<u64> {
    let bits = u64::from(byte & 0x7f);
    let shifted = bits.checked_shl(shift)?;
    (shifted >> shift == bits).then_some(number | shifted)
}

/// The number whose lowest seven bits come first. The highest bit of a byte says that another follows.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = next(bytes)?;
        number = with_bits(number, byte, shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// The first byte has three bits of the kind and four of the size.
fn kind_and_size(bytes: &mut &[u8]) -> Option<(u8, u64)> {
    let first = next(bytes)?;
    let low = u64::from(first & 0x0f);
    let high = match first & 0x80 {
        0 => 0,
        _ => varint(bytes)?,
    };
    let size = high.checked_mul(16)?.checked_add(low)?;
    Some((first >> 4 & 7, size))
}

/// How far before an object its base is. The highest seven bits come first, and each further byte adds one.
fn distance(bytes: &mut &[u8]) -> Option<u64> {
    let mut byte = next(bytes)?;
    let mut number = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next(bytes)?;
        number = number.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
    }
    Some(number)
}

/// Applies a difference: the sizes of base and result, then pieces that are copied from the base or included.
fn applied(base: &[u8], mut difference: &[u8], allowance: &Allowance) -> Option<Vec<u8>> {
    let of_base = varint(&mut difference)?;
    let size = varint(&mut difference)?;
    if of_base != base.len() as u64 || !allowance.take(size) {
        return None;
    }
    let mut result = Vec::new();
    while let Some(byte) = next(&mut difference) {
        let piece = match byte {
            0 => return None,
            0x80.. => copied(base, byte, &mut difference)?,
            length => {
                let (piece, rest) = difference.split_at_checked(length.into())?;
                difference = rest;
                piece
            }
        };
        if (result.len() + piece.len()) as u64 > size {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() as u64 == size).then_some(result)
}

/// The piece of the base that is copied. The bits of `byte` say which bytes of offset and length follow.
fn copied<'a>(base: &'a [u8], byte: u8, difference: &mut &[u8]) -> Option<&'a [u8]> {
    let mut numbers = [0_usize; 2];
    for bit in 0..7 {
        if byte >> bit & 1 == 1 {
            numbers[bit / 4] |= usize::from(next(difference)?) << (bit % 4 * 8);
        }
    }
    let [offset, length] = numbers;
    let length = if length == 0 { 0x1_0000 } else { length };
    base.get(offset..offset.checked_add(length)?)
}
