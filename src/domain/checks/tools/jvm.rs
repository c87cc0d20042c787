//! Stack traces of the Java virtual machine, which tell a package and the bare name of a file.

use crate::pattern::{Pattern, group};

/// Where a stack trace is in the class of the test that failed: the package as directories with the file,
/// and the line. `class` may leave out its package.
pub(super) fn place(trace: &[&str], class: &str) -> Option<(String, String)> {
    static FRAME: Pattern = Pattern::new(
        r"^\s+at (?:[^\s(]*/)?((?:[\w$]+\.)*)([\w$]+)\.[\w$<>]+\(([\w$]+\.(?:java|kt|scala|groovy)):(\d+)\)$",
    );
    let frames = trace.iter().filter_map(|line| FRAME.captures(line));
    let mut own = frames.filter(|frame| {
        let package = group(frame, 1);
        let outer = group(frame, 2).split('$').next().unwrap_or_default();
        class == outer || class == format!("{package}{outer}")
    });
    let frame = own.next()?;
    let directories = group(&frame, 1).replace('.', "/");
    let path = format!("{directories}{}", group(&frame, 3));
    Some((path, group(&frame, 4).to_owned()))
}
