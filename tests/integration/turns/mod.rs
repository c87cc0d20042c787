//! What a turn is taken for: the repository decides whether anything happened, plans without work are
//! nudged, and a failure that is reported is a failure.

mod assessments;
mod changes;
mod failed_reports;
mod heartbeat;
mod planning;
mod records;
