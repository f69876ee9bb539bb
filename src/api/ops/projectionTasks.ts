/** Verifications and repairs: requested here, carried out by processes with the role `projector`. */
import {
  type Requested,
  maintenance,
  MaintenanceRefusedError,
  MAX_REPAIRS,
  type Order,
} from '../../runtime/readmodels/index.js';
import { type AwaitedOrders, repairRequest, shownBy } from '../../ops/readmodels/orders.js';
import type { StartedOperation } from '../../commands/recordAccess.js';
import type { ReadStore } from '../../ports/readStore.js';
import { jsonAnswer, record } from '../pipeline/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import type { Call } from '../pipeline/route.js';
import type { Named } from './deps.js';
import { alteredProperty, type OpsAnswer, type OpsRoute, reasonProperty, STAFF } from './frame.js';
import { TASKS } from './projectionSchemas.js';

/** How long an answer waits for the end of a task, ms. */
const TASK_WAIT_MS = 5_000;
const MAX_SAMPLE = 10_000;

/** What the routes of one read model need. */
export interface ProjectionRoutesOptions {
  readonly of: (call: Call) => Named;
  readonly asking: (call: Call) => Requested;
  readonly exists: NonNullable<OpsRoute['exists']>;
  readonly orders: AwaitedOrders;
  readonly store: ReadStore;
  readonly params: Readonly<Record<string, string>>;
}

/** @throws HttpError in place of a refusal */
export async function refusalsAsErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MaintenanceRefusedError)) throw error;
    const { message, refusal } = error;
    throw new HttpError(refusal.busy === true ? 'projection_busy' : 'projection_refused', { message });
  }
}

/** Places an order and waits a short time for its end. @throws HttpError, UnavailableError */
export async function placed<K extends Order['kind']>(
  { orders }: Pick<ProjectionRoutesOptions, 'orders'>,
  order: { readonly kind: K; readonly projection: string; readonly requested: Requested },
  request: () => Promise<Order<K>['request']>,
  operation?: StartedOperation,
): Promise<Order<K>> {
  return refusalsAsErrors(async () => orders.place({ ...order, waitMs: TASK_WAIT_MS }, request, operation));
}

/** @throws HttpError task_not_found */
export function taskAnswer(order: Order | undefined): OpsAnswer {
  if (order === undefined) throw new HttpError('task_not_found');
  const { id, kind, projection, state, by, reason, at, told_at, progress, failure } = order;
  const result = kind === 'rebuild' ? null : order.result;
  return {
    body: { data: { id, kind, projection, state, by, reason, at, told_at, progress, result, failure } },
    shown: kind === 'rebuild' ? 1 : shownBy(order),
  };
}

/** The answers of a route that requests a task. */
function taskAnswers(kind: 'verification' | 'repair'): OpsRoute['answers'] {
  const { schema, example } = TASKS[kind];
  const running = { data: { ...example.data, state: 'running', progress: 0.4, result: null } };
  return [
    jsonAnswer('It has ended.', schema, example),
    jsonAnswer('It is under way.', schema, running, { status: 202 }),
  ];
}

export function taskRoutes(options: ProjectionRoutesOptions): OpsRoute[] {
  const { of, exists, params, store } = options;
  const { records } = store;

  async function ordered<K extends Order['kind']>(
    kind: K,
    { projection, requested }: Named,
    request: () => Promise<Order<K>['request']>,
    operation?: StartedOperation,
  ): Promise<OpsAnswer> {
    const order = await placed(options, { kind, projection: projection.name, requested }, request, operation);
    return { ...taskAnswer(order), status: order.state === 'running' ? 202 : 200 };
  }

  const shared = { tag: 'Projections', roles: ['support'], params, exists } as const;

  return [
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/verification',
      operation: 'verifyProjection',
      roles: STAFF,
      summary: 'Compare a read model with the log, document by document',
      description:
        'Folds the log into a temporary copy and compares it by id with the served documents, which stay in use; documents that changed meanwhile are compared again. The answer is 202 where this takes longer than 5 s. ' +
        'With `sample` only this many random documents are compared: quick, but missing documents are not found.',
      body: record({ sample: { type: 'integer', minimum: 1, maximum: MAX_SAMPLE }, reason: reasonProperty }, [
        'reason',
      ]),
      bodyExample: { sample: 500, reason: 'the monthly check' },
      answers: taskAnswers('verification'),
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      handle: async (call) => {
        const { sample } = call.body as { readonly sample?: number };
        return ordered('verification', of(call), async () => (sample === undefined ? {} : { sample }));
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name/verification',
      operation: 'getVerification',
      roles: STAFF,
      summary: 'The last verification of a read model',
      watched: true,
      answers: [{ status: 200, description: 'Its progress or result.', ...TASKS.verification }],
      errors: ['projection_not_found', 'task_not_found'],
      handle: async (call) => taskAnswer(await maintenance.last(records, 'verification', of(call).projection.name)),
    },
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/repair',
      operation: 'repairProjection',
      summary: 'Repair single documents of a read model',
      description:
        'The log is first held against what was signed over it: one that was altered is refused. Folds the documents from the log and replaces them while they are served; quarantined documents return to service if this release can fold them. `found` repairs those that differed in the last verification. ' +
        'The answer is 202 where this takes longer than 5 s.',
      body: record(
        {
          ids: {
            type: 'array',
            minItems: 1,
            maxItems: MAX_REPAIRS,
            items: { type: 'string', minLength: 1, maxLength: 200 },
          },
          found: { type: 'boolean', const: true, 'x-message': 'found must be true' },
          altered: alteredProperty,
          reason: reasonProperty,
        },
        ['reason'],
      ),
      bodyExample: { ids: ['5f2c9d6a1b7e4c80d3a1'], reason: 'ticket 4711' },
      answers: taskAnswers('repair'),
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      async handle(call, _sight, start) {
        const named = of(call);
        const { ids, found, altered } = call.body as {
          readonly ids?: readonly string[];
          readonly found?: true;
          readonly altered?: boolean;
        };
        if ((ids === undefined) === (found === undefined))
          throw new HttpError('schema', { message: 'give ids, or found' });
        const request = async (): Promise<Order<'repair'>['request']> => ({
          ...(await repairRequest(records, named.projection.name, ids ?? 'found')),
          uncheckedLog: altered === true,
        });
        // The call is recorded first: the projector carries out the request even if this process dies.
        return ordered('repair', named, request, await start());
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name/repair',
      operation: 'getRepair',
      summary: 'The last repair of a read model',
      watched: true,
      answers: [{ status: 200, description: 'Its progress, or the outcome for each document.', ...TASKS.repair }],
      errors: ['projection_not_found', 'task_not_found'],
      handle: async (call) => taskAnswer(await maintenance.last(records, 'repair', of(call).projection.name)),
    },
  ];
}
