import type { Logger } from 'pino';
import { shortcodeOf } from '../domain/giftIds.js';
import type { Engines } from '../ports/engines.js';
import { runProcessors } from '../processors/processors.js';
import type { Lookups } from '../processors/managers.js';
import type { Processors } from '../processors/runner/run.js';
import type { ReadModels } from '../projections/index.js';
import { openText } from '../runtime/personal/sealedTexts.js';
import type { Subjects } from '../runtime/personal/subjects.js';
import type { Followers } from '../runtime/supervision/followers.js';

export interface ProcessesOptions {
  readonly engines: Engines;
  readonly models: Pick<ReadModels, 'accounts'>;
  readonly subjects: Subjects;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly logger: Logger;
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
}

/** Where receivers are reached at present. */
export function receiverLookups({
  models,
  subjects,
}: Pick<ProcessesOptions, 'models' | 'subjects'>): Pick<Lookups, 'contact' | 'numberOf'> {
  return {
    async contact(userId) {
      const found = await models.accounts.get(`user-${userId}`);
      if (found?.entry !== 'user') return undefined;
      const { name, phone_number, device_tokens, locale } = found;
      return { name, phone_number, device_tokens, locale };
    },
    numberOf: async (phoneId) => (await subjects.secrets([phoneId])).get(phoneId)?.toString(),
  };
}

export function startProcesses({
  engines,
  models,
  subjects,
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
    ...receiverLookups({ models, subjects }),
    openText: (sealed) => openText(subjects, sealed),
  });
}
