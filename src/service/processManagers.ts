import type { Logger } from 'pino';
import { shortcodeOf } from '../domain/giftIds.js';
import type { Engines } from '../ports/engines.js';
import { runProcessors } from '../processors/processors.js';
import type { Processors } from '../processors/runner/run.js';
import type { ReadModels } from '../projections/index.js';
import type { Followers } from '../runtime/supervision/followers.js';

export interface ProcessesOptions {
  readonly engines: Engines;
  readonly models: Pick<ReadModels, 'accounts'>;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly logger: Logger;
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
}

export function startProcesses({
  engines,
  models,
  publicUrl,
  logger,
  holder,
  followers,
}: ProcessesOptions): Processors {
  const { events, bus, store } = engines;
  return runProcessors({
    events,
    bus,
    logger,
    holder,
    followers,
    records: store.records,
    launchUrl: (giftId) => `${publicUrl}/g/${shortcodeOf(giftId)}`,
    async paymentMethod(reference) {
      const found = await models.accounts.get(`paymentMethod-${reference}`);
      return found?.entry === 'paymentMethod' ? found : undefined;
    },
    async contact(userId) {
      const found = await models.accounts.get(`user-${userId}`);
      if (found?.entry !== 'user') return undefined;
      const { name, phone_number, device_tokens, locale } = found;
      return { name, phone_number, device_tokens, locale };
    },
  });
}
