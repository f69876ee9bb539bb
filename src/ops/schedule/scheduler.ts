/**
 * Does scheduled work once, whatever is killed (docs/design.md#scheduled-work); of several processes, one does it,
 * by a lease. The read model tells which streams to read; each decision is made from the streams.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import { openWriter } from '../../processors/runner/index.js';
import { type ScheduleDocument, scheduleProjection } from '../../projections/schedule.js';
import { NotOursError, whileHeld, workByLease } from '../../runtime/coordination/index.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import type { Round } from './expiryRounds.js';
import { type ReminderDeps, reminderRounds, type ReminderSettings } from './remind.js';
import { sendDue } from './sendDue.js';
import { expiryNewsRounds } from './tellExpiry.js';

const LOOK_MS = 500;
/** First and longest wait before a restart, in ms: a round of a day may be long, and begins again after a failure. */
const DAY_RESTART_MS = [500, 60_000] as const;

export interface SchedulerOptions extends Pick<ReminderDeps, 'contact' | 'numberOf'> {
  readonly reminders: ReminderSettings;
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly schedule: ReadModel<ScheduleDocument>;
  /** Present time: ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
  /** The leases' duration, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
}

export function startScheduler(options: SchedulerOptions): { close(): Promise<void> } {
  const { schedule, store, contact, numberOf } = options;
  const sending = follow(
    options,
    'sending',
    (deps) => async (now, signal) => sendDue({ ...deps, schedule }, now, signal),
  );
  const expiry = follow(
    options,
    'expiry',
    (deps) => expiryNewsRounds({ ...deps, schedule, records: store.records }),
    DAY_RESTART_MS,
  );
  const reminders = follow(
    options,
    'reminders',
    (deps) => reminderRounds({ ...deps, ...options.reminders, contact, numberOf, schedule, records: store.records }),
    DAY_RESTART_MS,
  );
  return { close: async () => void (await Promise.all([sending, expiry, reminders].map(async (one) => one.close()))) };
}

function follow(
  { events, store, now, holder, logger, followers, leaseMs: ttlMs }: SchedulerOptions,
  name: string,
  rounds: (deps: GiftChangeDeps) => Round,
  restartMs?: readonly [first: number, most: number],
): { close(): Promise<void> } {
  const writer = openWriter(events, () => Date.parse(now()));
  return followers.start(
    name,
    async ({ signal: closing, onTrouble, well }) => {
      const options = { holder, signal: closing, logger, ttlMs, onTrouble };
      await workByLease(store.records, name, options, async (lease, signal) => {
        const round = rounds({ events, writer, mayAct: whileHeld(() => lease.held, signal) });
        try {
          while (!signal.aborted) {
            // While the read model is built for the first time nothing else is held up, so no process is unready for
            // it.
            if ((await store.active(scheduleProjection.name)) !== undefined) await round(now(), signal);
            well();
            await pause(LOOK_MS, signal);
          }
        } catch (error) {
          if (!signal.aborted && !(error instanceof NotOursError)) throw error;
        }
      });
    },
    restartMs === undefined ? {} : { restartMs },
  );
}
