export { type BuildId, buildOf, buildText, numberOf, sameVersion } from './buildNumbers.js';
export { foldDocument } from './foldDocument.js';
export { dropFrozenBuilds } from './frozenBuilds.js';
export type { Difference } from './maintenance/differences.js';
export { forgetFindings, lastFindings, recordFindings } from './maintenance/lastFindings.js';
export { lastProgress, type RebuildProgress } from './maintenance/progress.js';
export { rate } from './maintenance/rate.js';
export {
  abortRebuild,
  type Asked,
  build,
  checkRebuild,
  type RebuildDeps,
  RebuildRefusedError,
  requestRebuild,
  requestRollback,
  seizeBuildLease,
} from './maintenance/rebuild.js';
export { startRebuilder } from './maintenance/rebuilder.js';
export { MaintenanceRefusedError, type Remedy } from './maintenance/refused.js';
export { MAX_REPAIRS, repair, type RepairOptions, RepairRefusedError } from './maintenance/repair.js';
export { type RepairOrder, type RepairOutcome, REPAIRS } from './maintenance/repairOrders.js';
export { openTasks, type Task, type TaskKind, TaskRunningError, type Tasks } from './maintenance/tasks.js';
export {
  verifyAll,
  VerifyInterruptedError,
  type VerifyOptions,
  type VerifyReport,
  verifySample,
} from './maintenance/verify.js';
export { waitWithStandby } from './maintenance/waitWithStandby.js';
export { keeperLease, orphanOf } from './orphanedModels.js';
export { ownBuild } from './ownBuild.js';
export { keptPreviousBuilds, previousBuildOf } from './previousBuilds.js';
export { checkpointName, type Projection, typesOf } from './projection.js';
export { type ProjectorOptions, startProjector } from './projector.js';
export { listQuarantined } from './quarantine.js';
export { openReadModel, type ReadModel } from './readModel.js';
export { BEHIND_WAIT_MS, type DocumentStreams, type LogEnds, readYourWrites } from './readYourWrites.js';
export { type Rebuild, rebuildOf } from './rebuildRecord.js';
export { SwapOutdatedError } from './swap.js';
export { LeaseLostError } from './writer.js';
