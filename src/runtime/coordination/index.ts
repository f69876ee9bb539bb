export { type LeaderWatch, watchLeaders } from './leaderWatch.js';
export {
  acquireLease,
  type Lease,
  LEASE_MS,
  LeaseHeldError,
  leaseState,
  type LeaseState,
  NotOursError,
  seizeLease,
  whileHeld,
} from './lease.js';
export { considerate, type Pace, paced } from './pace.js';
export { type Holder, openPresence, type Presence } from './presence.js';
export { reportServing } from './serving.js';
export { shareOf } from './share.js';
export { workByLease } from './workByLease.js';
