import type { Logger } from 'pino';
import type { Shortcodes } from '../domain/giftIds.js';
import type { Engines } from '../ports/engines.js';
import type { EventStore } from '../ports/eventStore.js';
import { type Lookups, runProcessors } from '../processors/managers.js';
import { addressOf } from '../processors/notification/address.js';
import type { Processors } from '../processors/runner/index.js';
import { type AccountDocument, accountAtLogEnd } from '../projections/accounts.js';
import type { ReadModels } from '../projections/index.js';
import { UnavailableError } from '../ports/unavailable.js';
import { openText, type Subjects } from '../runtime/personal/index.js';
import type { Followers } from '../runtime/supervision/followers.js';

export interface ProcessesOptions {
  readonly engines: Engines;
  readonly models: Pick<ReadModels, 'accounts'>;
  readonly subjects: Subjects;
  /** The service's public address, without a trailing slash. */
  readonly publicUrl: string;
  readonly shortcodes: Pick<Shortcodes, 'of'>;
  readonly logger: Logger;
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
}

/**
 * Look-ups of receivers' present addresses, and of messages. Whether a user can be reached is read from the log, since
 * the answer is final for a notification. The read model may lack an address that was imported just now.
 */
export function receiverLookups({
  events,
  accounts,
  subjects,
}: {
  readonly events: Pick<EventStore, 'read'>;
  readonly accounts: Pick<ReadModels['accounts'], 'get'>;
  readonly subjects: Pick<Subjects, 'secrets' | 'areStored'>;
}): Pick<Lookups, 'contact' | 'numberOf' | 'openText'> {
  const settled = settledSecrets(subjects);
  return {
    async contact(userId) {
      const found = await accountAtLogEnd({ events, accounts }, `user-${userId}`, canBeReached);
      if (found?.entry !== 'user') return undefined;
      const { name, phone_number, device_tokens, locale } = found;
      return { name, phone_number, device_tokens, locale };
    },
    numberOf: async (phoneId) => (await settled.secrets([phoneId])).get(phoneId)?.toString(),
    openText: async (sealed) => openText(settled, sealed),
  };
}

/**
 * Secrets that are absent only where they are gone for good: an erasure that has fenced them may yet be withdrawn, or
 * wait for money. @throws UnavailableError while a subject is being erased
 */
function settledSecrets(subjects: Pick<Subjects, 'secrets' | 'areStored'>): Pick<Subjects, 'secrets'> {
  return {
    async secrets(ids) {
      const found = await subjects.secrets(ids);
      for (const id of ids)
        if (!found.has(id) && (await subjects.areStored([{ id }])))
          throw new UnavailableError('an erasure of a person was given up just now');
      return found;
    },
  };
}

/**
 * The log decides where the read model lacks the method, or shows one that the buyer could not have paid with: the
 * purchase was accepted by the log then, and an import may have changed how it is charged.
 */
export function paymentMethodLookup(deps: Parameters<typeof accountAtLogEnd>[0]): Lookups['paymentMethod'] {
  return async (reference, buyerId) => {
    const found = await accountAtLogEnd(
      deps,
      `paymentMethod-${reference}`,
      (shown) => shown.entry === 'paymentMethod' && shown.active && shown.users.includes(buyerId),
    );
    return found?.entry === 'paymentMethod' ? found : undefined;
  };
}

function canBeReached(account: AccountDocument): boolean {
  return account.entry === 'user' && addressOf({ user_id: account.id }, account, undefined) !== undefined;
}

export function startProcesses({
  engines,
  models,
  subjects,
  publicUrl,
  shortcodes,
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
    launchUrl: (giftId) => `${publicUrl}/g/${shortcodes.of(giftId)}`,
    paymentMethod: paymentMethodLookup({ events, accounts: models.accounts }),
    ...receiverLookups({ events, accounts: models.accounts, subjects }),
  });
}
