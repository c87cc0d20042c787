//! Parses server-sent events from chunks of a body, in bounded memory.
//!
//! Existing crates do not limit the length of an event, and only the data of each event is needed.

/// Maximum length of an event in bytes.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// An incremental parser for the body.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
}

/// The error for an event that is too long.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Events {
    /// Processes a chunk and returns the data of each complete event.
    ///
    /// # Errors
    /// When an event is too long.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        for &byte in chunk {
            let second_half =
                std::mem::replace(&mut self.after_return, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// The remaining event at the end of the body: some servers leave out the last empty line.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        let ended = (!self.line.is_empty()).then(|| self.end_line()).flatten();
        ended.or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_event();
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data
                .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
        }
        None
    }

    fn end_event(&mut self) -> Option<Vec<u8>> {
        let had = std::mem::take(&mut self.has_data);
        let data = std::mem::take(&mut self.data);
        had.then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut all: Vec<Vec<u8>> = Vec::new();
        for chunk in chunks {
            all.extend(events.push(chunk).unwrap());
        }
        all.extend(events.finish());
        let text = all.into_iter().map(|data| String::from_utf8(data).unwrap());
        text.collect()
    }

    #[test]
    fn only_the_data_counts() {
        let body: &[u8] =
            b": hello\n\nevent: x\ndata: {\"a\":1}\n\ndata:b\r\ndata: c\r\n\r\nid: 3\n\ndata: last";
        assert_eq!(read(&[body]), ["{\"a\":1}", "b\nc", "last"]);
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut events = Events::default();
        let chunk = vec![b'x'; 1 << 20];
        let outcome = (0..20).try_for_each(|_| events.push(&chunk).map(drop));
        assert_eq!(outcome, Err(TooLong));
    }

    proptest! {
        #[test]
        fn where_the_body_is_cut_makes_no_difference(
            body in prop::collection::vec(prop::sample::select(vec!["data: a", "\n", "\r\n", "\r", ":", "data:"]), 0..20),
            at in 0_usize..200,
        ) {
            let body = body.concat();
            let at = at.min(body.len());
            let (one, two) = body.as_bytes().split_at(at);
            prop_assert_eq!(read(&[one, two]), read(&[body.as_bytes()]));
        }
    }
}
