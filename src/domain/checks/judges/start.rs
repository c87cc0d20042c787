//! The tree on which a task starts.

/// The tree before the run. Paths are relative to the top of the work tree.
pub trait Start {
    /// Whether a path is a file or a link.
    fn is_file(&self, path: &str) -> bool;
    /// Whether a path is a directory.
    fn is_directory(&self, path: &str) -> bool;
    /// The paths of all files, sorted. It takes longer than the rest.
    fn paths(&self) -> &[String];
    /// The content of a file, if it is text within a size limit.
    fn read(&self, path: &str) -> Option<String>;
}
