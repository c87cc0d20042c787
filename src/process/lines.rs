//! Splits bytes into lines, with a limit on the memory for one line.

use super::retain::Tail;

/// How many bytes at the end of an overlong line are kept.
const END: usize = 64 << 10;

/// The memory, in bytes, that is kept for the next line.
const RETAINED: usize = 1 << 20;

/// A line without its terminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// The complete line.
    Whole(&'a [u8]),
    /// The start and the end of a line that is longer than the limit.
    Cut {
        /// Its first bytes, up to the limit.
        head: &'a [u8],
        /// The number of bytes that followed.
        dropped: u64,
        /// The last 64 KiB of those.
        end: &'a [u8],
    },
}

/// Splits a stream at `\n` and `\r\n`. Uses at most the limit and 64 KiB of memory, however long a line
/// is.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    cap: usize,
    pending: Vec<u8>,
    dropped: u64,
    end: Tail,
}

impl LineSplitter {
    /// Lines of at most `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            pending: Vec::new(),
            dropped: 0,
            end: Tail::new(END),
        }
    }

    /// Whether the next byte starts a line.
    pub fn is_at_line_start(&self) -> bool {
        self.pending.is_empty() && self.dropped == 0
    }

    /// Adds a chunk and passes on every line that it completes.
    pub fn push(&mut self, mut chunk: &[u8], mut on_line: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            // Most lines lie within one chunk and need no copy.
            let bare = line.strip_suffix(b"\r").unwrap_or(line);
            if self.is_at_line_start() && bare.len() <= self.cap {
                on_line(Line::Whole(bare));
                continue;
            }
            self.extend(line);
            if self.dropped == 0 {
                self.pending.pop_if(|last| *last == b'\r');
            } else if self.end.pop_if(b'\r') {
                // The last dropped byte belongs to the terminator.
                self.dropped -= 1;
            }
            self.emit(&mut on_line);
        }
        self.extend(chunk);
    }

    /// Passes on the last line if the stream ended without a terminator.
    pub fn finish(mut self, mut on_line: impl FnMut(Line<'_>)) {
        if !self.is_at_line_start() {
            self.emit(&mut on_line);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.cap.saturating_sub(self.pending.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        // A long line gets all its room at once, since the allocator keeps the smaller pieces that a growing one
        // leaves. Only what is written to takes memory.
        let length = self.pending.len() + kept.len();
        if length > RETAINED.max(self.pending.capacity()) {
            self.pending.reserve_exact(room);
        }
        self.pending.extend_from_slice(kept);
        if !dropped.is_empty() {
            self.dropped += dropped.len() as u64;
            self.end.push(dropped);
        }
    }

    fn emit(&mut self, on_line: &mut impl FnMut(Line<'_>)) {
        on_line(match self.dropped {
            0 => Line::Whole(&self.pending),
            dropped => Line::Cut {
                head: &self.pending,
                dropped,
                end: self.end.as_slice(),
            },
        });
        self.pending.clear();
        self.pending.shrink_to(RETAINED);
        if self.dropped > 0 {
            self.end = Tail::new(END);
        }
        self.dropped = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Seen {
        head: Vec<u8>,
        dropped: u64,
    }

    fn split(cap: usize, chunks: &[&[u8]]) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut collect = |line: Line<'_>| {
            seen.push(match line {
                Line::Whole(head) => Seen {
                    head: head.to_vec(),
                    dropped: 0,
                },
                Line::Cut { head, dropped, end } => {
                    assert_eq!(end.len() as u64, dropped);
                    Seen {
                        head: [head, end].concat(),
                        dropped,
                    }
                }
            });
        };
        let mut splitter = LineSplitter::new(cap);
        for chunk in chunks {
            splitter.push(chunk, &mut collect);
            assert!(splitter.pending.capacity() <= cap.next_power_of_two().max(8));
        }
        splitter.finish(&mut collect);
        seen
    }

    /// The lines if memory were unlimited.
    fn expected(cap: usize, text: &[u8]) -> Vec<Seen> {
        let mut lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
        let last = lines.pop().filter(|last| !last.is_empty());
        lines
            .into_iter()
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .chain(last)
            .map(|line| Seen {
                head: line.to_vec(),
                dropped: line.len().saturating_sub(cap) as u64,
            })
            .collect()
    }

    #[test]
    fn a_line_is_cut_at_the_cap_and_its_terminator_never_counts() {
        let whole = |text: &str| Seen {
            head: text.into(),
            dropped: 0,
        };
        let cut = |text: &str, dropped| Seen {
            head: text.into(),
            dropped,
        };
        let cases: [(&[&[u8]], Vec<Seen>); 8] = [
            (&[b""], vec![]),
            (
                &[b"a\n\nb\r\nc"],
                vec![whole("a"), whole(""), whole("b"), whole("c")],
            ),
            (&[b"ab", b"c", b"d\r", b"\n"], vec![whole("abcd")]),
            (&[b"abcd", b"\r\n"], vec![whole("abcd")]),
            (&[b"abcde\n"], vec![cut("abcde", 1)]),
            (&[b"abcdef\r", b"\nx"], vec![cut("abcdef", 2), whole("x")]),
            (&[b"abcd\r", b"e\n"], vec![cut("abcd\re", 2)]),
            (&[b"a\rb\n"], vec![whole("a\rb")]),
        ];
        for (chunks, lines) in cases {
            assert_eq!(split(4, chunks), lines, "{chunks:?}");
        }
    }

    #[test]
    fn a_long_line_is_moved_once() {
        let mut splitter = LineSplitter::new(16 << 20);
        let chunk = vec![b'x'; 64 << 10];
        let mut places = std::collections::BTreeSet::new();
        for pushed in 1..=256 {
            splitter.push(&chunk, |_| panic!("the line has not ended"));
            if pushed * chunk.len() > RETAINED {
                places.insert(splitter.pending.as_ptr());
            }
        }
        assert_eq!((places.len(), splitter.pending.len()), (1, 16 << 20));
    }

    #[test]
    fn a_line_of_64_mib_costs_no_more_than_the_cap() {
        let mut splitter = LineSplitter::new(1 << 20);
        let chunk = vec![b'x'; 64 << 10];
        for _ in 0..1024 {
            splitter.push(&chunk, |_| panic!("the line has not ended"));
        }
        assert!(splitter.pending.capacity() <= 1 << 20);
        let mut seen = None;
        splitter.push(b"\n", |line| {
            if let Line::Cut { head, dropped, end } = line {
                seen = Some((head.len(), dropped, end.len()));
            }
        });
        assert_eq!(seen, Some((1 << 20, 63 << 20, END)));
    }

    proptest! {
        #[test]
        fn however_it_is_chunked_the_lines_are_the_same(
            chunks in prop::collection::vec("[ab\r\n]{0,6}", 0..12),
            cap in 1_usize..8,
        ) {
            let pieces: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
            prop_assert_eq!(split(cap, &pieces), expected(cap, &pieces.concat()));
        }
    }
}
