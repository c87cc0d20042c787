//! The plan file without the parts that only Sprag writes.

use crate::domain::plan::MAX_FILE_BYTES;
use crate::git::bytes::as_path;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::PlanExempt;
use crate::git::snapshot::listing::Recorded;

impl Repo {
    /// `None` if the file is no plan, also because it is too large for one.
    pub(crate) fn stripped_plan(&self, plan: &PlanExempt) -> Option<Vec<u8>> {
        let content = self.work_file(&plan.path, MAX_FILE_BYTES as u64)?;
        (plan.strip)(&content)
    }

    pub(crate) fn stripped_base(
        &self,
        plan: &PlanExempt,
        oid: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let path = [b"--path=", plan.path.as_slice()].concat();
        let call = self
            .converting()?
            .args(["cat-file", "--filters"])
            .args([as_path(&path)]);
        Ok((plan.strip)(&call.args([oid]).run()?.stdout))
    }

    pub(crate) fn is_same_plan(
        &self,
        plan: Option<&PlanExempt>,
        indexed: Option<&Recorded>,
    ) -> Result<bool, GitError> {
        let Some((plan, indexed)) = plan.zip(indexed) else {
            return Ok(false);
        };
        let current = self.stripped_plan(plan);
        Ok(current.is_some() && current == self.stripped_base(plan, &indexed.oid)?)
    }
}
