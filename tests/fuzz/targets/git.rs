//! What an agent can write into a git directory.

use sprag::git::foreign_bytes as parsers;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of digits in an id.
const LENGTH: usize = 40;
/// The largest object that is read into memory, in bytes.
const LARGEST: usize = 16 << 20;
/// How many objects an index for a made-up pack has.
const OBJECTS: u8 = 6;

/// A store with one pack, which is written anew for each input.
fn store(index: &[u8], pack: &[u8]) -> PathBuf {
    let name = format!(
        "sprag-fuzz-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(dir.join("pack")).expect("a directory");
    fs::write(dir.join("pack/pack-x.idx"), index).expect("a file");
    fs::write(dir.join("pack/pack-x.pack"), pack).expect("a file");
    dir
}

fn read_all<'a>(store: &Path, ids: impl Iterator<Item = &'a [u8]>) {
    for id in ids {
        let (size, content) = parsers::packed_object(store, id);
        if let Some(content) = content {
            assert!(content.len() <= LARGEST, "{}", content.len());
            assert_eq!(size, Some(content.len() as u64));
        }
    }
}

/// A pack. The first bytes say where its objects begin, two for each; their ids are bytes that are all the same, so that
/// a difference can name another object as its base.
pub(super) fn pack(data: &[u8]) {
    let Some((offsets, pack)) = data.split_at_checked(2 * usize::from(OBJECTS)) else {
        return;
    };
    let ids: Vec<[u8; 20]> = (1..=OBJECTS).map(|n| [n; 20]).collect();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=u8::MAX {
        index.extend(u32::from(first.min(OBJECTS)).to_be_bytes());
    }
    index.extend(ids.as_flattened());
    index.extend([0; 4 * OBJECTS as usize]);
    for offset in offsets.chunks(2) {
        index.extend([0, 0]);
        index.extend(offset);
    }
    let store = store(&index, pack);
    read_all(&store, ids.iter().map(<[u8; 20]>::as_slice));
    fs::remove_dir_all(store).expect("the store goes");
}

/// The index of a pack, with objects for what it points to.
pub(super) fn pack_index(data: &[u8]) {
    let index = [b"\xfftOc\0\0\0\x02".as_slice(), data].concat();
    let store = store(&index, include_bytes!("../seeds/git-pack/blobs"));
    let ids = index.get(8 + 4 * 256..).unwrap_or_default().chunks(20);
    read_all(
        &store,
        ids.take(16).chain([[7; 20].as_slice(), &[255; 32], &[]]),
    );
    fs::remove_dir_all(store).expect("the store goes");
}

/// A `packed-refs` file.
pub(super) fn packed_refs(data: &[u8]) {
    let (refs, _) = parsers::packed_refs(data, "refs/heads/main", LENGTH);
    for (name, value) in refs.into_iter().flatten() {
        assert!(is_ref(&name) && is_id(&value), "{name} {value}");
        // Where the header has the name too, git is asked.
        let (_, found) = parsers::packed_refs(data, &name, LENGTH);
        assert!(found.is_none_or(|found| found == value), "{name}");
    }
}

/// An index, and the same one with a file more.
pub(super) fn index(data: &[u8]) {
    let directories = parsers::index(data, LENGTH);
    // Each but the top directory is named in the path of an entry.
    assert!(directories.is_none_or(|number| number <= data.len()));
    let edited = parsers::index_with(data, b"a/file", LENGTH);
    if let (Some(number), Some(edited)) = (directories, edited) {
        let now = parsers::index(&edited, LENGTH);
        assert!(now.is_some_and(|now| now == number || now == number + 1));
    }
}

/// The file of a ref.
pub(super) fn loose_ref(data: &[u8]) {
    let Some(value) = parsers::loose_ref(data, LENGTH) else {
        return;
    };
    match value.strip_prefix("ref:") {
        Some(target) => assert!(is_ref(target), "{value}"),
        None => assert!(is_id(&value), "{value}"),
    }
}

/// A tree: what is read as one is written the same again.
pub(super) fn tree(data: &[u8]) {
    let Some(entries) = parsers::tree(data, LENGTH) else {
        return;
    };
    let mut written = Vec::new();
    for (mode, name, id) in entries {
        assert!(is_id(&id) || id.bytes().all(|byte| byte == b'0'), "{id}");
        written.extend(format!("{mode:o} ").bytes());
        written.extend(name);
        written.push(0);
        let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).expect("digits");
        written.extend((0..LENGTH).step_by(2).map(digits));
    }
    assert_eq!(written, data);
}

/// A commit.
pub(super) fn commit(data: &[u8]) {
    let read = parsers::commit(data, LENGTH);
    assert!(read.tree.is_none_or(|tree| is_id(&tree)));
    assert!(read.message.is_none_or(|message| data.ends_with(&message)));
}

/// The file of an object, and one that is made of the input as its inflated content.
pub(super) fn loose_object(data: &[u8]) {
    let id = "8e27be7d6154a1f68ea9160ef0e18691d20560dc";
    let deflated = deflated(data);
    for file in [data, &deflated] {
        let (content, size) = parsers::loose_object(file, id).expect("bytes are readable");
        if let Some(content) = content {
            // Nobody finds another content with this id.
            assert_eq!(content, b"text\n");
            assert_eq!(size, Some(5));
        }
    }
}

/// A zlib stream that stores these bytes as they are.
fn deflated(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut chunks = data.chunks(0xffff).peekable();
    if data.is_empty() {
        stream.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(chunk) = chunks.next() {
        let length = u16::try_from(chunk.len()).expect("a chunk is short");
        stream.push(u8::from(chunks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(chunk);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

fn is_ref(name: &str) -> bool {
    name.starts_with("refs/")
        && !name.contains("..")
        && !name.contains("//")
        && !name.ends_with('/')
}

fn is_id(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
