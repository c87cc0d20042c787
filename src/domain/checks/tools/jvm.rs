//! Stack traces of the Java virtual machine, which name a package and a bare file name.

use crate::pattern::{Pattern, group};

/// The location at which a stack trace enters the failed test's class: the file, with the package as
/// directories, and the line. `class` may omit its package.
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
