//! Against real repositories.

mod checkouts;
mod commit;
mod guard;
mod hostile;
mod ignore;
mod restore;
mod snapshot;
mod support;
