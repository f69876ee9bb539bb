/** The work of processes with the role `processor`: erasures, process managers, scheduled work and webhooks. */
import { type Deliveries, type Sender, startWebhooks } from '../deliveries/index.js';
import { type Resources, resources } from '../lib/async/resources.js';
import { currentTime } from '../lib/clock.js';
import { type Erasures, finishErasures } from '../ops/people/index.js';
import type { OutwardWork } from '../ops/outward/outwardWork.js';
import { startScheduler } from '../processors/schedule/scheduler.js';
import type { Processors } from '../processors/runner/index.js';
import { dueGifts } from '../projections/dueGifts.js';
import type { ReadModels } from '../projections/index.js';
import type { Config } from './config.js';
import { type ProcessesOptions, receiverLookups, startProcesses } from './processManagers.js';

interface ProcessorRoleOptions extends ProcessesOptions {
  readonly config: Pick<
    Config,
    'reminderDays' | 'reminderHours' | 'webhookPrivateAddresses' | 'webhookRefusedNetworks'
  >;
  readonly models: Pick<ReadModels, 'accounts' | 'catalogue' | 'feed' | 'schedule' | 'webhookEndpoints'>;
  readonly erasures: Erasures;
  readonly outward: Pick<OutwardWork, 'state' | 'onChange'>;
  readonly version: string;
  /** Sends webhooks; default: over the network. */
  readonly sender?: Sender | undefined;
}

interface ProcessorRole {
  /** The running process managers; `undefined` while outward work is held. */
  readonly processes: () => Processors | undefined;
  readonly webhooks: () => Deliveries | undefined;
}

interface Outward {
  readonly processes: Processors;
  readonly webhooks: Deliveries;
  close(): Promise<void>;
}

export function startProcessorRole(options: ProcessorRoleOptions, open: Resources): ProcessorRole {
  const { erasures, followers, outward, logger } = options;
  open.add(followers.start('erasures', async (run) => finishErasures(erasures, currentTime, run), { aside: true }));
  let working: Outward | undefined;
  let closed = false;
  let last: Promise<void> = Promise.resolve();

  async function end(): Promise<void> {
    const ending = working;
    working = undefined;
    await ending?.close();
  }

  async function adapt(): Promise<void> {
    if (closed) return;
    if (outward.state().held !== undefined) await end();
    else working ??= startOutwardWork(options);
  }

  if (outward.state().held === undefined) working = startOutwardWork(options);
  outward.onChange(() => {
    last = last.then(adapt).catch((err: unknown) => logger.error({ err }, 'outward work could not be held or resumed'));
  });
  open.add({
    async close() {
      closed = true;
      await last;
      await end();
    },
  });
  return { processes: () => working?.processes, webhooks: () => working?.webhooks };
}

/** Starts outward work, all that reaches others. A copy of a log does not do it (docs/design.md#outward-work). */
function startOutwardWork(options: ProcessorRoleOptions): Outward {
  const { config, engines, models, subjects, version, sender, logger, holder, followers, outward } = options;
  const open = resources();
  const processes = open.add(startProcesses(options));
  open.add(
    startScheduler({
      events: engines.events,
      records: engines.store.records,
      due: dueGifts(engines.store, models.schedule),
      ...receiverLookups({ events: engines.events, accounts: models.accounts, subjects }),
      reminders: { days: config.reminderDays, hours: config.reminderHours },
      now: currentTime,
      holder,
      logger,
      followers,
    }),
  );
  const webhooks = open.add(
    startWebhooks({
      engines,
      models,
      subjects,
      resumedAt: outward.state().resumedAt,
      addressRules: {
        privateAddresses: config.webhookPrivateAddresses === 'allow',
        refusedNetworks: config.webhookRefusedNetworks,
      },
      version,
      sender,
      logger,
      holder,
      followers,
    }),
  );
  return { processes, webhooks, close: open.close };
}
