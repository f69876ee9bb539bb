/** Routes for webhook endpoints (docs/api/webhooks.md#webhook-endpoints). */
import { idFrom } from '../../commands/commandIds.js';
import { type CommandContext, type Transacted, upToOwn } from '../../commands/transact.js';
import {
  changeOwnEndpoint,
  createEndpoint,
  deleteOwnEndpoint,
  openOwnEndpoint,
  type OwnEndpoint,
  rotateOwnSecret,
} from '../../commands/webhookEndpoints.js';
import { shownSecret } from '../../commands/webhookSecrets.js';
import { Refusal } from '../../domain/refusal.js';
import {
  type EndpointChange,
  type EndpointOwner,
  type EndpointSettings,
  LONGEST_GRACE_SECONDS,
  MOST_ENDPOINTS,
  ownerName,
  type WebhookEndpointCreated,
  type WebhookSecretRotated,
} from '../../domain/webhookEndpoint.js';
import { webhookUrlFault } from '../../domain/webhookUrl.js';
import { endpointRow } from '../../ops/webhooks/webhookRows.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import {
  type EndpointDocument,
  endpointDocument,
  webhookEndpointsProjection,
} from '../../projections/webhookEndpoints.js';
import { foldDocument } from '../../runtime/readmodels/index.js';
import { keyedGate } from '../pipeline/gate.js';
import { commandContext } from '../pipeline/commandContext.js';
import { faultOf } from '../pipeline/errors.js';
import type { Answer, EarlyCall, Route } from '../pipeline/route.js';
import { countSchema, dataAnswer, flagSchema, jsonAnswer, listSchema, record } from '../pipeline/schemas.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ownerOf } from '../events/viewers.js';
import { allOwnEndpoints, ownEndpoint } from './ownEndpoints.js';
import { createdSchema, endpointExample, endpointSchema, secretExample, secretSchema, SETTINGS } from './schemas.js';

const PATH = '/api/v2/webhook-endpoints';
export const ENDPOINT_PATH = `${PATH}/:endpointId`;

/** Properties that every route for webhook endpoints has. */
const COMMON = {
  tag: 'Webhook endpoints',
  caller: 'any',
  noStore: true,
  reads: ['webhookEndpoints'],
} as const satisfies Partial<Route>;

export const NAMED = { ...COMMON, params: { endpointId: 'The endpoint’s id.' } } as const satisfies Partial<Route>;

/** The most creations of one owner that wait for their turn. */
const MOST_WAITING = 20;
/** How long a creation waits for the read model, which counts the endpoints, ms. */
const COUNT_MS = 1_000;

/** @throws Refusal `webhook_endpoint_not_found` for a malformed id */
export function endpointIdOf({ params }: EarlyCall): string {
  const { endpointId = '' } = params;
  if (!/^[0-9a-f]{32}$/.test(endpointId)) throw new Refusal('webhook_endpoint_not_found');
  return endpointId;
}

/**
 * The endpoint that the request names, opened for its caller, who must own it.
 * @throws HttpError `forbidden`; Refusal `webhook_endpoint_not_found`; UnavailableError
 */
export async function openedBy(
  early: EarlyCall,
  deps: WebhookEndpointDeps,
): Promise<{ readonly own: OwnEndpoint; readonly context: CommandContext }> {
  const context = commandContext(early, deps.now());
  const owner = ownerOf(early);
  const named = { id: endpointIdOf(early), owner };
  return { own: await openOwnEndpoint(deps, named, context), context };
}

/** @throws HttpError `schema` */
function checkUrl(url: string | undefined, { urls }: WebhookEndpointDeps): void {
  const fault = url === undefined ? undefined : webhookUrlFault(url, urls);
  if (fault !== undefined) throw faultOf('url', fault);
}

/** The endpoint as the command left it. */
function endpointAfter(id: string, done: Transacted): EndpointDocument {
  const document = foldDocument(webhookEndpointsProjection, upToOwn(done), endpointDocument(id));
  if (document === undefined) throw new Error('an endpoint was changed that has no events');
  return document as EndpointDocument;
}

type WithSecret = RecordedEvent & { readonly data: (WebhookEndpointCreated | WebhookSecretRotated)['data'] };

/** @throws UnavailableError */
async function secretMadeBy({ subjects }: WebhookEndpointDeps, { own }: Transacted): Promise<string> {
  const made = own.find((event): event is WithSecret => 'secret_id' in event.data);
  if (made === undefined) throw new Error('no secret was made');
  return shownSecret(subjects, made.data.secret_id);
}

/** Parts of an answer to a command besides its body. */
export function written(
  { endpoints }: Pick<WebhookEndpointDeps, 'endpoints'>,
  { own, replayed }: Transacted,
): Pick<Answer, 'position' | 'replayed' | 'waitFor'> {
  return { position: own.at(-1)?.position, replayed, waitFor: [endpoints] };
}

export function endpointRoutes(deps: WebhookEndpointDeps): Route[] {
  const { endpoints, events, takeDaily } = deps;
  const turns = keyedGate(MOST_WAITING);

  /**
   * Counts the owner's endpoints, those that earlier turns have created among them, and takes one of the day's
   * creations.
   * @throws Refusal `too_many_webhook_endpoints`, HttpError `too_many_requests`; UnavailableError
   */
  async function admitCreation(owner: EndpointOwner): Promise<void> {
    const end = await events.end();
    if (end !== undefined && !(await endpoints.reached(end, COUNT_MS)))
      throw new UnavailableError('webhook endpoints can’t be counted: their read model is behind the log');
    if ((await allOwnEndpoints(endpoints, owner)).length >= MOST_ENDPOINTS)
      throw new Refusal('too_many_webhook_endpoints');
    await takeDaily('webhook-endpoints', ownerName(owner));
  }

  return [
    {
      ...COMMON,
      method: 'POST',
      path: PATH,
      operation: 'createWebhookEndpoint',
      summary: 'Create a webhook endpoint',
      description:
        'Has events sent to an address of yours, from now on: those that `GET /api/v2/events` shows to the client’s token, or redemptions at the merchant, for its users with the permission `webhooks`. They come as Standard Webhooks, at least once each, in order for each gift. At most 20 endpoints.',
      body: record(SETTINGS, ['url']),
      bodyExample: { url: endpointExample.url, types: endpointExample.types, description: endpointExample.description },
      answers: [
        dataAnswer(
          'The endpoint, with its secret.',
          createdSchema,
          { ...endpointExample, secret: secretExample },
          { status: 201 },
        ),
      ],
      errors: ['forbidden', 'too_many_webhook_endpoints', 'too_many_requests'],
      async open(early) {
        const owner = ownerOf(early);
        return async (call) => {
          const { url, types = null, description = null } = call.body as Partial<EndpointSettings> & { url: string };
          checkUrl(url, deps);
          const id = idFrom(call.commandId, 'webhookEndpoint', 128);
          const context = commandContext(call, deps.now());
          const done = await turns.run(ownerName(owner), async () =>
            createEndpoint(deps, { id, owner }, { url, types, description }, context, async () => admitCreation(owner)),
          );
          const secret = await secretMadeBy(deps, done);
          const data = { ...endpointRow(endpointAfter(id, done)), secret };
          return { status: 201, body: { data }, ...written(deps, done), unstored: true };
        };
      },
    },
    {
      ...COMMON,
      method: 'GET',
      path: PATH,
      operation: 'listWebhookEndpoints',
      summary: 'The caller’s webhook endpoints',
      description: 'Those of the client, or of the merchant, in the order of their creation.',
      answers: [dataAnswer('All of them.', listSchema(endpointSchema), [endpointExample])],
      errors: ['forbidden'],
      async handle(call) {
        return { body: { data: (await allOwnEndpoints(endpoints, ownerOf(call))).map(endpointRow) } };
      },
    },
    {
      ...NAMED,
      method: 'GET',
      path: ENDPOINT_PATH,
      operation: 'getWebhookEndpoint',
      summary: 'Show a webhook endpoint',
      description: 'One of the caller’s, without its secret.',
      answers: [dataAnswer('The endpoint.', endpointSchema, endpointExample)],
      errors: ['forbidden', 'webhook_endpoint_not_found'],
      async handle(call) {
        const found = await ownEndpoint(endpoints, ownerOf(call), endpointIdOf(call));
        return { body: { data: endpointRow(found) } };
      },
    },
    {
      ...NAMED,
      method: 'PATCH',
      path: ENDPOINT_PATH,
      operation: 'changeWebhookEndpoint',
      summary: 'Change, disable or enable a webhook endpoint',
      description:
        'Fields that are absent stay as they are. An endpoint that is enabled gets what happens from then on; `recover` sends what came meanwhile.',
      body: record({ ...SETTINGS, disabled: flagSchema() }, []),
      bodyExample: { disabled: true },
      answers: [
        dataAnswer('The endpoint.', endpointSchema, {
          ...endpointExample,
          disabled: true,
          disabled_by: 'owner',
          disabled_at: '2026-05-06T09:00:00.000Z',
        }),
      ],
      errors: ['forbidden', 'webhook_endpoint_not_found', 'too_many_webhook_requests'],
      async open(early) {
        const { own, context } = await openedBy(early, deps);
        return async (call) => {
          const change = call.body as EndpointChange;
          checkUrl(change.url, deps);
          const done = await changeOwnEndpoint(deps, own, change, context);
          return {
            body: { data: endpointRow(endpointAfter(own.id, done)) },
            ...written(deps, done),
          };
        };
      },
    },
    {
      ...NAMED,
      method: 'DELETE',
      path: ENDPOINT_PATH,
      operation: 'deleteWebhookEndpoint',
      summary: 'Delete a webhook endpoint',
      description: 'Nothing is delivered any more, what was under way included.',
      answers: [jsonAnswer('It is gone.', record({}), {})],
      errors: ['forbidden', 'webhook_endpoint_not_found'],
      async open(early) {
        const { own, context } = await openedBy(early, deps);
        return async () => {
          const done = await deleteOwnEndpoint(deps, own, context);
          return { body: {}, ...written(deps, done) };
        };
      },
    },
    {
      ...NAMED,
      method: 'POST',
      path: `${ENDPOINT_PATH}/secret`,
      operation: 'rotateWebhookSecret',
      summary: 'Give a webhook endpoint a new secret',
      description:
        'For a grace period deliveries are signed with earlier secrets, too. Without one, after a leak, they end at once.',
      body: record(
        {
          grace_period_seconds: countSchema('How long earlier secrets sign, too; 0: no longer. Absent: 24 hours.', {
            maximum: LONGEST_GRACE_SECONDS,
          }),
        },
        [],
      ),
      bodyOptional: true,
      bodyExample: { grace_period_seconds: 0 },
      answers: [
        dataAnswer('The new secret.', secretSchema, {
          id: endpointExample.id,
          secret: secretExample,
          previous_until: '2026-05-05T12:30:00.000Z',
        }),
      ],
      errors: ['forbidden', 'webhook_endpoint_not_found', 'too_many_webhook_requests'],
      async open(early) {
        const { own, context } = await openedBy(early, deps);
        return async (call) => {
          const { grace_period_seconds: grace } = call.body as { readonly grace_period_seconds?: number };
          const done = await rotateOwnSecret(deps, own, context, grace);
          const [rotation] = done.own as readonly (RecordedEvent & WebhookSecretRotated)[];
          const secret = await secretMadeBy(deps, done);
          const data = { id: own.id, secret, previous_until: rotation?.data.previous_until };
          return { body: { data }, ...written(deps, done), unstored: true };
        };
      },
    },
  ];
}
