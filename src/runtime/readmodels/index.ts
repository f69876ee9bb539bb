export { type BuildId, buildOf, buildText, numberOf, sameVersion } from './buildNumbers.js';
export { foldDocument } from './foldDocument.js';
export { dropFrozenBuilds } from './frozenBuilds.js';
export { findingsPage, lastFindings } from './maintenance/findings.js';
export { type Maintenance, type MaintenanceOptions, startMaintenance } from './maintenance/maintainer.js';
export {
  type Asked,
  failureOf,
  type FoundDifference,
  lastOrder,
  MaintenanceRefusedError,
  type Order,
  orderAfter,
  type OrderKind,
  orderNow,
  placeOrder,
  type Remedy,
  type Requests,
  withdrawOrder,
} from './maintenance/orders.js';
export { lastProgress, type RebuildProgress } from './maintenance/progress.js';
export { abortRebuild, requestRollback } from './maintenance/rebuild.js';
export { MAX_REPAIRS } from './maintenance/repair.js';
export { type RepairOrder, type RepairOutcome, REPAIRS } from './maintenance/repairOrders.js';
export { keeperLease, orphanOf } from './orphanedModels.js';
export { ownBuild } from './ownBuild.js';
export { keptPreviousBuilds } from './previousBuilds.js';
export { checkpointName, type Projection, typesOf } from './projection.js';
export { type ProjectorOptions, startProjector } from './projector.js';
export { listQuarantined } from './quarantine.js';
export { openReadModel, type ReadModel } from './readModel.js';
export { BEHIND_WAIT_MS, type DocumentStreams, type LogEnds, readYourWrites } from './readYourWrites.js';
export { type Rebuild, rebuildOf } from './rebuildRecord.js';
export { SwapOutdatedError } from './swap.js';
export { LeaseLostError } from './writer.js';
