//! What an agent can write into a git directory.

use sprag::git::foreign_bytes as parsers;

/// The number of digits in an id.
const LENGTH: usize = 40;

/// A tree: its entries are within it, and of kinds that git has.
pub(super) fn tree(data: &[u8]) {
    let mut length = 0;
    for (mode, name, id) in parsers::tree(data, LENGTH) {
        length += name.len() + id.len() / 2 + 3;
        assert!(!name.is_empty() && !name.contains(&b'/'), "{name:?}");
        assert!(is_id(&id), "{id}");
        let kinds = [0o100_644, 0o100_755, 0o120_000, 0o160_000, 0o40_000];
        assert!(kinds.contains(&mode), "{mode:o}");
    }
    assert!(length <= data.len());
}

/// A commit.
pub(super) fn commit(data: &[u8]) {
    let read = parsers::commit(data);
    assert!(read.message.is_none_or(|message| data.ends_with(&message)));
    assert!(read.tree.is_none_or(|tree| tree.len() < data.len()));
}

/// The file of an object, and one that is made of the input as its inflated content.
pub(super) fn loose_object(data: &[u8]) {
    let id = "8e27be7d6154a1f68ea9160ef0e18691d20560dc";
    let deflated = deflated(data);
    for file in [data, &deflated] {
        let content = parsers::loose_object(file, id).expect("bytes are readable");
        if let Some(content) = content {
            // Nobody finds another content with this id.
            assert_eq!(content, b"text\n");
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

fn is_id(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
