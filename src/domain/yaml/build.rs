//! Builds a tree from the parser's events.

use super::{Entry, MAX_DEPTH, MAX_NODES, Node, Style, Value};
use crate::text_error::{Fault, Position};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use std::collections::HashMap;

pub(super) fn build(text: &str) -> Result<Option<Node>, Fault> {
    let mut options = granit_parser::options! {
        simple_key_max_lookahead: 4096,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| scan_fault(text, &error))?;
        builder.take(event, span)?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: usize,
    nodes: usize,
}

/// A collection whose end has not come yet.
struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let (value, anchor, tag) = match event {
            Event::DocumentStart(..) => return self.start_document(&span),
            Event::SequenceEnd | Event::MappingEnd => return self.close(&span),
            Event::Alias(anchor) => return self.alias(anchor, &span),
            Event::Scalar(text, style, anchor, tag) => {
                let style = style_of(style, tag.as_deref());
                let text = text.into_owned();
                (Value::Scalar { text, style }, anchor, tag)
            }
            Event::SequenceStart(_, anchor, tag) => {
                (Value::List { items: Vec::new() }, anchor, tag)
            }
            Event::MappingStart(style, anchor, tag) => {
                let flow = style == StructureStyle::Flow;
                let entries = Vec::new();
                (Value::Map { entries, flow }, anchor, tag)
            }
            _ => return Ok(()),
        };
        check_tag(tag.as_deref(), &span)?;
        let node = Node {
            at: position(span.start),
            span: span.byte_range().unwrap_or_default(),
            value,
            own: anchor == 0 && tag.is_none(),
        };
        if matches!(node.value, Value::Scalar { .. }) {
            return self.complete(node, anchor);
        }
        self.check_depth(1, node.at)?;
        self.open.push(Open {
            node,
            anchor,
            key: None,
        });
        Ok(())
    }

    fn start_document(&mut self, span: &Span) -> Result<(), Fault> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(Fault::new(
                position(span.start),
                "a second document begins here, but a file holds one (remove the `---` line)",
            ));
        }
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), Fault> {
        let Some(Open {
            mut node, anchor, ..
        }) = self.open.pop()
        else {
            return Ok(());
        };
        node.span.end = span.end.byte_offset().unwrap_or_default();
        if let Value::Map { entries, .. } = &mut node.value {
            *entries = merged(std::mem::take(entries))?;
        }
        self.complete(node, anchor)
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Fault> {
        let at = position(span.start);
        let Some(anchored) = self.anchors.get(&anchor) else {
            let message = "an alias cannot stand inside its own anchor";
            return Err(Fault::new(at, message));
        };
        self.check_depth(depth(anchored), at)?;
        // The limit is checked before the node is copied.
        self.nodes += size(anchored) - 1;
        check_size(self.nodes, at)?;
        let node = Node {
            at,
            span: span.byte_range().unwrap_or_default(),
            own: false,
            value: anchored.value.clone(),
        };
        self.complete(node, 0)
    }

    /// Attaches a finished node to its parent.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        self.nodes += 1;
        if anchor != 0 {
            self.nodes += size(&node);
            self.anchors.insert(anchor, node.clone());
        }
        check_size(self.nodes, node.at)?;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.value, open.key.take()) {
            (Value::List { items }, _) => items.push(node),
            (Value::Map { entries, .. }, Some(key)) => {
                let Value::Scalar { text, .. } = key.value else {
                    let message = "a key must be a word, not a list or a mapping";
                    return Err(Fault::new(key.at, message));
                };
                entries.push(Entry {
                    key: text,
                    key_at: key.at,
                    key_span: key.span,
                    value: node,
                    merged: false,
                });
            }
            (_, None) => open.key = Some(node),
            (Value::Scalar { .. }, Some(_)) => {}
        }
        Ok(())
    }

    fn check_depth(&self, below: usize, at: Position) -> Result<(), Fault> {
        if self.open.len() + below > MAX_DEPTH {
            let message = format!("values nest deeper than {MAX_DEPTH} levels");
            return Err(Fault::new(at, message));
        }
        Ok(())
    }
}

fn check_size(nodes: usize, at: Position) -> Result<(), Fault> {
    if nodes <= MAX_NODES {
        return Ok(());
    }
    let message = "too many values, aliases counted as often as they are used";
    Err(Fault::new(at, message))
}

fn children(node: &Node) -> impl Iterator<Item = &Node> {
    let values = node.entries().iter().map(|entry| &entry.value);
    node.items().iter().chain(values)
}

/// The number of nodes in a tree.
fn size(node: &Node) -> usize {
    1 + children(node).map(size).sum::<usize>()
}

/// The number of collections in each other.
fn depth(node: &Node) -> usize {
    let is_scalar = matches!(node.value, Value::Scalar { .. });
    usize::from(!is_scalar) + children(node).map(depth).max().unwrap_or_default()
}

fn style_of(style: ScalarStyle, tag: Option<&Tag>) -> Style {
    match style {
        ScalarStyle::Plain if tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str")) => {
            Style::Quoted
        }
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}

fn check_tag(tag: Option<&Tag>, span: &Span) -> Result<(), Fault> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            let at = position(span.tag_start().unwrap_or(span.start));
            let message = format!(
                "the tag `{}` has no meaning here: remove it",
                tag.original()
            );
            Err(Fault::new(at, message))
        }
        _ => Ok(()),
    }
}

/// Checks that no key is given twice, and adds the entries that `<<` merges in.
fn merged(entries: Vec<Entry>) -> Result<Vec<Entry>, Fault> {
    let is_merge =
        |entry: &Entry| entry.key == "<<" && !matches!(entry.value.value, Value::Scalar { .. });
    let (merges, mut direct): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_merge);
    let mut known: HashMap<String, usize> = HashMap::with_capacity(direct.len());
    for entry in &direct {
        if let Some(line) = known.insert(entry.key.clone(), entry.key_at.line) {
            let message = format!("`{}` is given twice, first on line {line}", entry.key);
            return Err(Fault::new(entry.key_at, message));
        }
    }
    for merge in merges {
        let sources = match merge.value {
            Node {
                value: Value::List { items },
                ..
            } => items,
            source => vec![source],
        };
        for source in sources {
            let Value::Map { entries, .. } = source.value else {
                continue;
            };
            for entry in entries {
                if known.insert(entry.key.clone(), 0).is_none() {
                    direct.push(Entry {
                        merged: true,
                        ..entry
                    });
                }
            }
        }
    }
    Ok(direct)
}

fn scan_fault(text: &str, error: &ScanError) -> Fault {
    let at = position(*error.marker());
    let info = error.info();
    let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    if let Some(index) = text.lines().position(is_marker) {
        let at = Position::of_line(index + 1);
        return Fault::new(at, "unresolved merge conflict: resolve it");
    }
    // The parser reports a tab after a plain scalar at the end of the line before the tab.
    let lines_to_search = if info.contains("tab") { 2 } else { 1 };
    let lines = text.lines().enumerate().skip(at.line - 1);
    for (index, line) in lines.take(lines_to_search) {
        let blank = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        if let Some(tab) = blank.find('\t') {
            let at = Position {
                line: index + 1,
                column: tab + 1,
            };
            return Fault::new(at, "a tab cannot indent YAML: use spaces");
        }
    }
    let remedy = if info.contains("mapping values are not allowed") {
        "; put a text that contains a colon and a space in quotes, and indent the keys of a mapping alike"
    } else if info.contains("while parsing a block") {
        "; indent what belongs together alike"
    } else {
        ""
    };
    Fault::new(at, format!("not valid YAML: {info}{remedy}"))
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}
