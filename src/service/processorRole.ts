/** What processes with the role `processor` do. */
import type { Deliveries } from '../deliveries/deliveries.js';
import { startWebhooks } from '../deliveries/webhooks.js';
import type { Resources } from '../lib/async/resources.js';
import { currentTime } from '../lib/clock.js';
import type { ErasureDeps } from '../ops/people/erasure/erasureDeps.js';
import { finishErasures } from '../ops/people/erasure/finishErasures.js';
import { startScheduler } from '../ops/schedule/scheduler.js';
import type { Processors } from '../processors/runner/run.js';
import type { ReadModels } from '../projections/index.js';
import type { Config } from './config.js';
import { type ProcessesOptions, receiverLookups, startProcesses } from './processManagers.js';

export interface ProcessorRoleOptions extends ProcessesOptions {
  readonly config: Pick<
    Config,
    'reminderDays' | 'reminderHours' | 'webhookPrivateAddresses' | 'webhookRefusedNetworks'
  >;
  readonly models: Pick<ReadModels, 'accounts' | 'catalogue' | 'feed' | 'schedule' | 'webhookEndpoints'>;
  readonly erasure: ErasureDeps;
  readonly version: string;
}

export interface ProcessorRole {
  readonly processes: Processors;
  readonly webhooks: Deliveries;
}

export function startProcessorRole(options: ProcessorRoleOptions, open: Resources): ProcessorRole {
  const { config, erasure, engines, models, subjects, version, logger, holder, followers } = options;
  const processes = open.add(startProcesses(options));
  open.add(
    startScheduler({
      events: engines.events,
      store: engines.store,
      schedule: models.schedule,
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
      addressRules: {
        privateAddresses: config.webhookPrivateAddresses === 'allow',
        refusedNetworks: config.webhookRefusedNetworks,
      },
      version,
      logger,
      holder,
      followers,
    }),
  );
  open.add(followers.start('erasures', async (run) => finishErasures(erasure, currentTime, run)));
  return { processes, webhooks };
}
