//! Tests with real repositories.

mod adopted;
mod checkouts;
mod commit;
mod exports;
mod guard;
mod hostile;
mod ignore;
mod index_file;
mod objects;
mod plain_stage;
mod reader;
mod remotes;
mod replaced;
mod restore;
mod shortcuts;
mod snapshot;
mod support;
mod swap;
