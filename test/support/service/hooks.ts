/**
 * Webhooks without the HTTP API: embedded stores, the feed's and the endpoints' read models, and processes that
 * deliver, in a temporary folder, by a clock that tests set forward.
 */
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import type { CommandContext } from '../../../src/commands/transact.js';
import {
  changeOwnEndpoint,
  createEndpoint,
  deleteOwnEndpoint,
  disableFailingEndpoint,
  type NamedEndpoint,
  openOwnEndpoint,
  type OwnEndpoint,
  requestOwnDelivery,
  rotateOwnSecret,
} from '../../../src/commands/webhookEndpoints.js';
import { signingSecrets } from '../../../src/commands/webhookSecrets.js';
import { anyAddresses } from '../../../src/deliveries/addresses.js';
import { type Deliveries, type DeliveriesDeps, startDeliveries } from '../../../src/deliveries/deliveries.js';
import { openSender } from '../../../src/deliveries/sender.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import {
  type DeliveryRequested,
  type EndpointOwner,
  type EndpointSettings,
  webhookEndpointStream,
} from '../../../src/domain/webhookEndpoint.js';
import { attemptRecords, type WebhookAttempt } from '../../../src/messages/webhookAttempts.js';
import { type FeedDocument, feedProjection } from '../../../src/projections/feed/feed.js';
import { feedEvent, type FeedEvent } from '../../../src/projections/feed/feedEvent.js';
import { feedPage, type Viewer } from '../../../src/projections/feed/feedPage.js';
import {
  type EndpointDocument,
  endpointDocument,
  webhookEndpointsProjection,
} from '../../../src/projections/webhookEndpoints.js';
import { openReadModel, type ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { deferred } from '../../../src/lib/async/deferred.js';
import { inParallel } from '../../../src/lib/async/inParallel.js';
import { until } from '../assertions/until.js';
import { memorySubjects } from '../fixtures/memorySubjects.js';
import { type Installation, newInstallation, newEvent, purchase, silent } from '../fixtures/projecting.js';
import { type Answer, openReceiver, type Receiver } from './receiver.js';

export interface Endpoint extends NamedEndpoint {
  readonly client: string;
}

export interface Hooks extends Installation {
  readonly feed: ReadModel<FeedDocument>;
  /** The time, which a test sets forward. */
  readonly clock: { now(): string; forward(ms: number): void };
  receiver(answer?: Answer): Promise<Receiver>;
  /** Of a client of its own; waits until the read model has it. */
  endpoint(url: string, settings?: Partial<EndpointSettings> & { readonly owner?: EndpointOwner }): Promise<Endpoint>;
  change(endpoint: Endpoint, change: Parameters<typeof changeOwnEndpoint>[2]): Promise<void>;
  remove(endpoint: Endpoint): Promise<void>;
  rotate(endpoint: Endpoint): Promise<void>;
  request(endpoint: Endpoint, request: DeliveryRequested): Promise<void>;
  /** The newest first. */
  secrets(endpoint: Endpoint): Promise<readonly string[]>;
  /** A purchase through the client, and a gift of it: two events. @returns the gift's id */
  gift(client: string): Promise<string>;
  /** Events of the gift, in order: blocked, unblocked, blocked … */
  happen(gift: string, count: number): Promise<void>;
  redeem(gift: string, merchant: string): Promise<void>;
  unredeem(gift: string, merchant: string): Promise<void>;
  /** What the feed shows. */
  fed(viewer: Viewer): Promise<readonly FeedEvent[]>;
  attempts(endpoint: Endpoint): Promise<readonly WebhookAttempt[]>;
  types(endpoint: Endpoint): Promise<readonly string[]>;
  readonly deps: DeliveriesDeps;
  /** Starts a process that delivers. */
  process(replaced?: Partial<DeliveriesDeps>): Deliveries;
}

/** Of the projector: several run in one process. */
const LEASE_MS = 3_000;
/** Tests at once: they wait more than they compute. */
const AT_ONCE = 5;

export interface HooksSuite {
  (name: string, body: (context: { readonly hooks: Hooks }) => Promise<void>): void;
  run(): void;
}

/** Every test has hooks of its own, and a few run side by side. */
export function hooksSuite(title: string): HooksSuite {
  const tests = suite(title);
  const bodies: (() => Promise<void>)[] = [];
  tests.before(() => {
    // Each outcome is its own test's.
    void inParallel(bodies, AT_ONCE, async (body) => body().catch(() => undefined));
  });
  const add = (name: string, body: (context: { readonly hooks: Hooks }) => Promise<void>): void => {
    const outcome = deferred<void>();
    outcome.promise.catch(() => undefined);
    bodies.push(async () => withHooks(async (hooks) => body({ hooks })).then(outcome.resolve, outcome.reject));
    tests(name, async () => outcome.promise);
  };
  return Object.assign(add, { run: () => tests.run() });
}

async function withHooks(work: (hooks: Hooks) => Promise<void>): Promise<void> {
  const hooks = await openHooks();
  try {
    await work(hooks);
  } finally {
    await hooks.destroy();
  }
}

export async function openHooks(): Promise<Hooks> {
  const installation = await newInstallation();
  const { events, store } = installation;
  const projections = [feedProjection, webhookEndpointsProjection];
  await installation.project({ projections, leaseMs: LEASE_MS });
  const feed = openReadModel(store, feedProjection, events);
  const endpoints = openReadModel(store, webhookEndpointsProjection, events);
  const subjects = memorySubjects();
  const closes: (() => Promise<void>)[] = [];
  let ahead = 0;
  let people = 0;
  const now = (): string => new Date(Date.now() + ahead).toISOString();
  const context = (): CommandContext => {
    const commandId = randomUUID();
    return { commandId, correlationId: commandId, by: { client: 'test' }, now: now() };
  };
  /** What a command on it takes. */
  const opened = async <T>(endpoint: NamedEndpoint, wanted: T): Promise<[OwnEndpoint, T, CommandContext]> => {
    const now = context();
    return [await openOwnEndpoint({ events }, endpoint, now), wanted, now];
  };
  const append = async (stream: string, type: string, data: object, client?: string): Promise<void> => {
    const event = newEvent(type, data, now());
    const metadata = client === undefined ? event.metadata : { ...event.metadata, by: { client } };
    await events.append(stream, [{ ...event, metadata }], 'any');
  };
  const folded = async (): Promise<void> => {
    const end = await events.end();
    if (end === undefined) return;
    for (const model of [feed, endpoints]) await until(() => model.reached(end, 1_000), 'the read models');
  };
  /** The document as of the log's end. */
  const document = async ({ id }: NamedEndpoint): Promise<EndpointDocument> => {
    await folded();
    return (await endpoints.get(endpointDocument(id))) as EndpointDocument;
  };

  const deps: DeliveriesDeps = {
    events,
    records: store.records,
    feed,
    endpoints,
    logger: silent,
    holder: 'first',
    followers: followers({ logger: silent }),
    sender: openSender({ addresses: anyAddresses(), userAgent: 'test' }),
    now,
    random: () => 0,
    schedule: { firstMs: 20, mostMs: 100 },
    finishMs: 100,
    // Longer than a busy machine holds a test up.
    leaseMs: 30_000,
    signingSecrets: ({ secrets }, at) => signingSecrets(subjects, secrets, at),
    isOwnerActive: async () => true,
    areBuilt: async () => true,
    disable: async (endpoint, cause) => void (await disableFailingEndpoint({ events }, endpoint, cause, context())),
  };

  return {
    ...installation,
    feed,
    clock: { now, forward: (ms) => void (ahead += ms) },
    async receiver(answer) {
      const receiver = await openReceiver(answer);
      closes.push(() => receiver.close());
      return receiver;
    },
    async endpoint(url, { owner: given, ...settings } = {}) {
      const owner: EndpointOwner = given ?? { kind: 'client', id: `client-${++people}` };
      const named = { id: randomUUID(), owner };
      const whole = { url, types: null, description: null, ...settings };
      await createEndpoint({ events, subjects }, named, whole, context(), async () => undefined);
      await folded();
      return { ...named, client: owner.id };
    },
    change: async (endpoint, change) => void (await changeOwnEndpoint({ events }, ...(await opened(endpoint, change)))),
    remove: async (endpoint) => {
      const [own, , now] = await opened(endpoint, undefined);
      await deleteOwnEndpoint({ events }, own, now);
    },
    rotate: async (endpoint) => {
      const [own, , now] = await opened(endpoint, undefined);
      await rotateOwnSecret({ events, subjects }, own, now);
    },
    request: async (endpoint, request) =>
      void (await requestOwnDelivery({ events }, ...(await opened(endpoint, request)))),
    secrets: async (endpoint) => signingSecrets(subjects, (await document(endpoint)).secrets, now()),
    async gift(client) {
      const bought = purchase([{ user_id: 'u2' }]);
      await append(transactionStream(bought.transaction_id), 'GiftsPurchased', bought, client);
      const gift = randomUUID();
      await append(giftStream(gift), 'GiftIssued', {
        transaction_id: bought.transaction_id,
        index: 0,
        message_id: 'm',
        product_id: 'p1',
        brand_id: 'b1',
        value: 350,
        sender_id: 'u1',
        receiver: { user_id: 'u2' },
        purchased_at: now(),
        expires_on: '2099-01-01',
      });
      return gift;
    },
    async happen(gift, count) {
      for (let n = 0; n < count; n++)
        await append(giftStream(gift), n % 2 === 0 ? 'GiftBlocked' : 'GiftUnblocked', {
          cause: 'support:T',
          reason: '',
        });
    },
    redeem: async (gift, merchant) =>
      append(giftStream(gift), 'GiftRedeemed', {
        redemption_id: `r-${gift}`,
        location_id: 's1',
        location_merchant_id: merchant,
        merchant_id: merchant,
        brand_id: 'b1',
        product_id: 'p1',
        value: 350,
      }),
    unredeem: async (gift, merchant) =>
      append(giftStream(gift), 'GiftUnredeemed', {
        redemption_id: `r-${gift}`,
        location_id: 'l',
        merchant_id: merchant,
      }),
    async fed(viewer) {
      await folded();
      const { entries } = await feedPage(feed, viewer, { after: undefined, limit: 500 });
      return entries.map((placed) => feedEvent(placed, events.logId));
    },
    async attempts({ id }) {
      const found = await store.records.list<WebhookAttempt>(attemptRecords(id));
      return found.map(({ value }) => value).sort((one, other) => (one.at < other.at ? -1 : 1));
    },
    types: async ({ id }) => (await events.read(webhookEndpointStream(id))).map(({ type }) => type),
    deps,
    process(replaced) {
      const deliveries = startDeliveries({ ...deps, ...replaced });
      closes.push(() => deliveries.close());
      return deliveries;
    },
    async destroy() {
      for (const close of closes.reverse()) await close();
      await installation.destroy();
    },
  };
}
