//! The features of rmplan that Sprag takes over: the repository decides whether anything happened,
//! plans without work are nudged, and a failure that is reported is a failure.

mod books;
mod failed;
mod planning;
mod state;
mod turns;
