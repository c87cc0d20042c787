//! Builds a tree from the parser's events.

use super::{Entry, MAX_DEPTH, MAX_NODES, Node, Style, Value};
use crate::text_error::{Fault, Position};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

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
    anchors: HashMap<usize, Anchored>,
    documents: usize,
    nodes: usize,
}

struct Open {
    start: Marker,
    anchor: usize,
    own: bool,
    nodes_before: usize,
    deepest: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<Key>,
        flow: bool,
    },
}

struct Key {
    text: String,
    at: Position,
    span: Range<usize>,
}

struct Anchored {
    node: Node,
    nodes: usize,
    depth: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(..) => self.start_document(&span),
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar(text.into_owned(), style, anchor, tag.as_deref(), &span)?;
                self.complete(node, anchor, 1, 0)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(Collection::List(Vec::new()), anchor, tag.as_deref(), &span)
            }
            Event::MappingStart(style, anchor, tag) => {
                let map = Collection::Map {
                    entries: Vec::new(),
                    key: None,
                    flow: style == StructureStyle::Flow,
                };
                self.open(map, anchor, tag.as_deref(), &span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            Event::Alias(anchor) => self.alias(anchor, &span),
            _ => Ok(()),
        }
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

    fn open(
        &mut self,
        collection: Collection,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), Fault> {
        check_tag(tag, span)?;
        self.open.push(Open {
            start: span.start,
            anchor,
            own: anchor == 0 && tag.is_none(),
            nodes_before: self.nodes,
            deepest: 0,
            collection,
        });
        self.check_depth(0, span.start)
    }

    fn close(&mut self, span: &Span) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.collection {
            Collection::List(items) => Value::List { items },
            Collection::Map { entries, flow, .. } => Value::Map {
                entries: merged(entries)?,
                flow,
            },
        };
        let node = Node {
            at: position(open.start),
            span: offset(open.start)..offset(span.end),
            value,
            own: open.own,
        };
        let nodes = self.nodes - open.nodes_before + 1;
        self.complete(node, open.anchor, nodes, open.deepest + 1)
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Fault> {
        let at = position(span.start);
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Fault::new(
                at,
                "an alias cannot stand inside its own anchor",
            ));
        };
        let (nodes, depth) = (anchored.nodes, anchored.depth);
        self.check_depth(depth, span.start)?;
        // The limit is checked before the node is copied.
        if self.nodes + nodes > MAX_NODES {
            return Err(too_many(at));
        }
        let mut node = anchored.node.clone();
        node.at = at;
        node.span = range(span);
        node.own = false;
        self.nodes += nodes - 1;
        self.complete(node, 0, nodes, depth)
    }

    /// Attaches a finished node to its parent. `nodes` is its size including itself, and `depth` its depth.
    fn complete(
        &mut self,
        node: Node,
        anchor: usize,
        nodes: usize,
        depth: usize,
    ) -> Result<(), Fault> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(too_many(node.at));
        }
        if anchor != 0 {
            let anchored = Anchored {
                node: node.clone(),
                nodes,
                depth,
            };
            self.anchors.insert(anchor, anchored);
            self.nodes += nodes;
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.deepest = open.deepest.max(depth);
        match &mut open.collection {
            Collection::List(items) => items.push(node),
            Collection::Map { entries, key, .. } => match key.take() {
                None => *key = Some(as_key(node)?),
                Some(key) => entries.push(Entry {
                    key: key.text,
                    key_at: key.at,
                    key_span: key.span,
                    value: node,
                    merged: false,
                }),
            },
        }
        Ok(())
    }

    fn check_depth(&self, below: usize, marker: Marker) -> Result<(), Fault> {
        if self.open.len() + below > MAX_DEPTH {
            let message = format!("values nest deeper than {MAX_DEPTH} levels");
            return Err(Fault::new(position(marker), message));
        }
        Ok(())
    }
}

fn scalar(
    text: String,
    style: ScalarStyle,
    anchor: usize,
    tag: Option<&Tag>,
    span: &Span,
) -> Result<Node, Fault> {
    check_tag(tag, span)?;
    let as_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
    let style = match style {
        ScalarStyle::Plain if as_text => Style::Quoted,
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    };
    Ok(Node {
        at: position(span.start),
        span: range(span),
        value: Value::Scalar { text, style },
        own: anchor == 0 && tag.is_none(),
    })
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

fn as_key(node: Node) -> Result<Key, Fault> {
    match node.value {
        Value::Scalar { text, .. } => Ok(Key {
            text,
            at: node.at,
            span: node.span,
        }),
        _ => Err(Fault::new(
            node.at,
            "a key must be a word, not a list or a mapping",
        )),
    }
}

/// Checks that no key is given twice, and adds the entries that `<<` merges in.
fn merged(entries: Vec<Entry>) -> Result<Vec<Entry>, Fault> {
    let mut merges = Vec::new();
    let mut direct = Vec::with_capacity(entries.len());
    for entry in entries {
        if entry.key == "<<" && matches!(entry.value.value, Value::Map { .. } | Value::List { .. })
        {
            merges.push(entry.value);
        } else {
            direct.push(entry);
        }
    }
    refuse_repeated_keys(&direct)?;
    if merges.is_empty() {
        return Ok(direct);
    }
    let mut known: HashSet<String> = direct.iter().map(|entry| entry.key.clone()).collect();
    for merge in merges {
        let sources = match merge.value {
            Value::List { items } => items,
            _ => vec![merge],
        };
        for entry in sources.into_iter().flat_map(into_entries) {
            if known.insert(entry.key.clone()) {
                direct.push(Entry {
                    merged: true,
                    ..entry
                });
            }
        }
    }
    Ok(direct)
}

fn into_entries(node: Node) -> Vec<Entry> {
    match node.value {
        Value::Map { entries, .. } => entries,
        _ => Vec::new(),
    }
}

fn refuse_repeated_keys(entries: &[Entry]) -> Result<(), Fault> {
    let mut seen = HashSet::with_capacity(entries.len());
    for entry in entries {
        if !seen.insert(entry.key.as_str()) {
            let first = entries.iter().find(|first| first.key == entry.key);
            let line = first.map_or(entry.key_at.line, |first| first.key_at.line);
            let message = format!("`{}` is given twice, first on line {line}", entry.key);
            return Err(Fault::new(entry.key_at, message));
        }
    }
    Ok(())
}

fn too_many(at: Position) -> Fault {
    Fault::new(
        at,
        "too many values, aliases counted as often as they are used",
    )
}

fn scan_fault(text: &str, error: &ScanError) -> Fault {
    let at = position(*error.marker());
    let info = error.info();
    let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    if let Some(index) = text.lines().position(is_marker) {
        let at = Position {
            line: index + 1,
            column: 1,
        };
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

fn offset(marker: Marker) -> usize {
    marker.byte_offset().unwrap_or_default()
}

fn range(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or_default()
}
