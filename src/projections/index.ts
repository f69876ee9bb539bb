import type { EventStore } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import type { ReachedLog } from '../ports/storedPosition.js';
import { accountsProjection } from './accounts.js';
import { byUserProjection } from './byUser.js';
import { catalogueProjection } from './catalogue/catalogue.js';
import { giftsProjection } from './gifts.js';
import { giftStreams, transactionStreams } from './fromStreams.js';
import { feedProjection } from './feed/feed.js';
import {
  type LogEnds,
  openReadModel,
  type Projection,
  type ReadModel,
  readYourWrites,
} from '../runtime/readmodels/index.js';
import { passwordCostsProjection } from './passwordCosts.js';
import { parkedProjection } from './parked.js';
import { redemptionsProjection } from './redemptions.js';
import { reversalsProjection } from './reversals.js';
import { scheduleProjection } from './schedule.js';
import { transactionsProjection } from './transactions.js';
import { voucherCodesProjection } from './voucherCodes.js';
import { webhookEndpointsProjection } from './webhookEndpoints.js';

const ALL = {
  gifts: giftsProjection,
  transactions: transactionsProjection,
  accounts: accountsProjection,
  catalogue: catalogueProjection,
  voucherCodes: voucherCodesProjection,
  redemptions: redemptionsProjection,
  parked: parkedProjection,
  reversals: reversalsProjection,
  byUser: byUserProjection,
  feed: feedProjection,
  webhookEndpoints: webhookEndpointsProjection,
  schedule: scheduleProjection,
  passwordCosts: passwordCostsProjection,
} as const;

/** A new read model is listed here for a release: until it is built, only the routes that read it refuse requests. */
const BY_SOME = [
  'voucherCodes',
  'redemptions',
  'parked',
  'reversals',
  'byUser',
  'feed',
  'webhookEndpoints',
  'schedule',
  'passwordCosts',
] as const satisfies readonly (keyof typeof ALL)[];

/**
 * Read models that only routes with them in `reads` use and wait for. A process is ready before they are first built.
 */
export type ReadBySome = (typeof BY_SOME)[number];

export const PROJECTIONS: readonly Projection[] = Object.values(ALL);

/** Read models whose documents hold personal data in the clear. */
export const PERSONAL_READ_MODELS: readonly string[] = PROJECTIONS.flatMap(({ name, personal }) =>
  personal === undefined ? [] : [name],
);

export type ReadModels = {
  readonly [N in keyof typeof ALL]: (typeof ALL)[N] extends Projection<infer B> ? ReadModel<B> : never;
};

/**
 * Opens the read models, which need no close. `events`: the log, for read-your-writes on gifts and purchases. Single
 * ones are shown as the log has them, however far the read models are behind.
 */
export function openReadModels(
  store: ReadStore,
  events: LogEnds & ReachedLog & Pick<EventStore, 'read' | 'readAll'>,
): ReadModels {
  const models = Object.fromEntries(
    Object.entries(ALL).map(([name, projection]) => [name, openReadModel(store, projection, events)]),
  ) as ReadModels;
  return {
    ...models,
    gifts: readYourWrites(models.gifts, events, giftStreams(events, models.gifts)),
    transactions: readYourWrites(models.transactions, events, transactionStreams(events)),
  };
}

export const READ_BY_ALL = (Object.keys(ALL) as (keyof typeof ALL)[]).filter(
  (name): name is Exclude<keyof typeof ALL, ReadBySome> => !(BY_SOME as readonly string[]).includes(name),
);

export function isReadBySome({ name }: Pick<Projection, 'name'>): boolean {
  return BY_SOME.some((one) => ALL[one].name === name);
}
