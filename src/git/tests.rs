//! Tests with real repositories.

mod adopted;
mod checkouts;
mod commit;
mod exports;
mod guard;
mod hostile;
mod ignore;
mod objects;
mod reader;
mod remotes;
mod replaced;
mod restore;
mod shortcuts;
mod snapshot;
mod staging;
mod support;
mod swap;
