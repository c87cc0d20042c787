//! Opens a run: its confinement, its directory, its repository and its reports, after the last checks.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::output_schema::OutputSchema;
use crate::error::Result;
use crate::github::request::RunRequest;
use crate::run::begin::beginning::{Beginning, Place};
use crate::run::begin::earlier::{Earlier, spent_of};
use crate::run::begin::isolation::{Isolation, Scope, isolation};
use crate::run::begin::model_gateway::require_gateway;
use crate::run::begin::new_run::{begin_new, refuse_read_only, refuse_signer};
use crate::run::begin::prepare::Prepared;
use crate::run::begin::required_agents::{
    require_commands_of_roles, require_logins, require_programs,
};
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use tokio::runtime::Runtime;

/// A run that is ready for its first event.
pub(crate) struct Opened {
    pub(crate) place: Place,
    /// Where an earlier process of the run stopped.
    pub(crate) earlier: Option<Earlier>,
    /// The spend of that process, if it ran on another machine.
    pub(crate) spent_elsewhere: Option<Spend>,
    pub(crate) isolation: Isolation,
    pub(crate) schema: Option<OutputSchema>,
}

/// Opens the run directory and the reports, after the last checks.
pub(crate) fn open(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
    request: Option<&RunRequest>,
    mut beginning: Beginning,
    runtime: &Runtime,
) -> Result<(Opened, Reporting)> {
    let schema = prepared
        .output_schema
        .as_ref()
        .map(|source| source.load(context, &prepared.real, request, beginning.repo()))
        .transpose()?;
    let configs = || prepared.tasks.iter().map(|(_, config)| config);
    let run_dir = beginning.place().map(|place| place.run_dir.root());
    let scope = Scope::of(context, &prepared.real, &prepared.run, configs(), run_dir);
    let isolation = runtime.block_on(isolation(&scope))?;
    let filters = isolation.filters(Vec::new());
    prepared.real.confine_filters(filters.clone());
    let is_new = match beginning.place_mut() {
        Some(place) => {
            place.repo.confine_filters(filters);
            false
        }
        None => true,
    };
    runtime.block_on(jj::prepare(context, &prepared.real, &isolation, !is_new))?;
    require_agents(context, prepared)?;
    refuse_read_only(&prepared.real, !prepared.run.settings.allow_dirty)?;
    let (place, earlier, spent_elsewhere, reporting) = place(context, args, prepared, beginning)?;
    isolation.make_directories();
    let opened = Opened {
        place,
        earlier,
        spent_elsewhere,
        isolation,
        schema,
    };
    Ok((opened, reporting))
}

/// Requires the agents' programs and logins, as far as no setup command may provide them.
fn require_agents(context: &Context, prepared: &Prepared) -> Result<()> {
    if !prepared.work.has_agent() {
        return Ok(());
    }
    let configs = || prepared.tasks.iter().map(|(_, config)| config);
    require_programs(context, configs())?;
    if prepared.run.setup.is_empty() {
        require_commands_of_roles(context, prepared.real.work_tree(), configs())?;
        require_logins(context, configs())?;
    }
    require_gateway(context, &prepared.run, configs())
}

/// The place of the run and its reports.
fn place(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    beginning: Beginning,
) -> Result<(Place, Option<Earlier>, Option<Spend>, Reporting)> {
    let (place, earlier, elsewhere) = match beginning {
        Beginning::New => {
            let (place, reporting) = begin_new(context, args, prepared)?;
            return Ok((place, None, None, reporting));
        }
        Beginning::Resumed(place, earlier) => (place, earlier, None),
        Beginning::Restored(place, earlier) => {
            let spent = spent_of(&earlier);
            (place, earlier, Some(spent))
        }
    };
    refuse_signer(prepared, &place.repo)?;
    let reporting = Reporting::open(
        context,
        &prepared.run.settings,
        args.output,
        &place.run_dir,
        prepared.real.work_tree(),
        Some(&earlier.summary),
    )?;
    Ok((place, Some(earlier), elsewhere, reporting))
}
