//! The plan file without the parts that only Sprag writes.

use crate::git::bytes::as_path;
use crate::git::error::{GitError, io_error};
use crate::git::repo::Repo;
use crate::git::snapshot::change::PlanExempt;
use crate::git::snapshot::listing::Recorded;
use crate::plain_file;
use std::io::Read;

impl Repo {
    pub(in crate::git) fn stripped_plan(
        &self,
        plan: &PlanExempt,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let path = self.real.work_tree.join(as_path(&plan.path));
        let mut content = Vec::new();
        plain_file::open(&path)
            .and_then(|mut file| file.read_to_end(&mut content))
            .map_err(io_error("read", &path))?;
        Ok((plan.strip)(&content))
    }

    pub(in crate::git) fn stripped_base(
        &self,
        plan: &PlanExempt,
        oid: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let path = [b"--path=", plan.path.as_slice()].concat();
        let call = self
            .call()
            .args(["cat-file", "--filters"])
            .args([as_path(&path)]);
        Ok((plan.strip)(&call.args([oid]).run()?.stdout))
    }

    pub(in crate::git) fn is_same_plan(
        &self,
        plan: Option<&PlanExempt>,
        indexed: Option<&Recorded>,
    ) -> Result<bool, GitError> {
        let Some((plan, indexed)) = plan.zip(indexed) else {
            return Ok(false);
        };
        let current = self.stripped_plan(plan).unwrap_or_default();
        Ok(current.is_some() && current == self.stripped_base(plan, &indexed.oid)?)
    }
}
