import { currentOrder, failureOf, lastOrder, orderAfter, placeOrder, withdrawOrder } from './orders.js';
import { lastProgress } from './progress.js';
import { abortRebuild, requestRollback } from './rebuild.js';
import { rebuildOf } from '../rebuildRecord.js';
import { findingsPage, lastFindings } from './verification.js';

/** What requesters of maintenance call: they store orders, and watch the records of these. */
export const maintenance = {
  /** Orders of every kind. */
  place: placeOrder,
  now: currentOrder,
  after: orderAfter,
  last: lastOrder,
  withdraw: withdrawOrder,
  failureOf,
  /** What verifications found. */
  findingsPage,
  lastFindings,
  /** Rebuilds in progress. */
  rebuildOf,
  lastProgress,
  abort: abortRebuild,
  rollBack: requestRollback,
} as const;
