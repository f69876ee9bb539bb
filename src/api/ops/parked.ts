import type { Sight } from '../../ops/history/eventView.js';
import { parkedView, type ParkedView, parkedWithEvents } from '../../ops/parked/parkedView.js';
import { findParked } from '../../commands/findParked.js';
import { discardParked, retryParked } from '../../commands/parkedWork.js';
import { PARKED_NAMES } from '../../domain/parked.js';
import type { Condition } from '../../ports/readStore.js';
import {
  choiceSchema,
  dataAnswer,
  entity,
  flagSchema,
  integerSchema,
  jsonAnswer,
  listSchema,
  orNull,
  querySchema,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import { waitUntilProjected } from '../pipeline/positions.js';
import type { Call, EarlyCall, Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { callerSchema, eventExample, eventSchema } from './eventSchemas.js';
import { type OpsAnswer, type OpsRoute, reasonProperty, supportContextOf, STAFF } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';
import { refuseOtherPositions } from './ranges.js';

const STATES = ['parked', 'retried', 'discarded'] as const;
const ID = textSchema();

const properties = {
  id: textSchema('The same each time this entity of this process manager is parked.'),
  process: choiceSchema(PARKED_NAMES, 'The process manager that gave it up.'),
  step: textSchema('The step that failed.'),
  entity: textSchema(
    'The id of the transaction, the gift whose receiver is to be notified, the refund or the dispute.',
  ),
  transaction_id: ID,
  state: choiceSchema(
    STATES,
    '`parked`: waits for a person; `retried`: handed back to its process manager; `discarded`: will not be done.',
  ),
  cause: textSchema('Why the step failed.'),
  times: integerSchema('How often it has been parked in a row.', { minimum: 1 }),
  parked_at: timeSchema('When it was parked last.'),
  changed_at: timeSchema('When it was last parked, retried or discarded.'),
  position: textSchema('The log position of that event.'),
  by: { anyOf: [callerSchema, { type: 'null' }], description: 'Who retried or discarded it last.' },
} as const satisfies Record<keyof ParkedView, Schema>;

const parkedSchema = entity('ParkedWork', properties);
const withEvents = entity('ParkedWorkWithEvents', {
  ...properties,
  reason: orNull(textSchema('The reason they gave; empty once it was erased.')),
  settled: flagSchema(
    'Whether the work itself has ended, in success or failure: settled and issued, notified or failed, refunded. It distinguishes a finished retry from one under way.',
  ),
  events: listSchema(eventSchema, 'Its events, in order.'),
});

const example: ParkedView = {
  id: '3f0b8a1de29c4f7d5a6b90c1e2d3f4a5',
  process: 'purchase',
  step: 'charge',
  entity: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  state: 'parked',
  cause: 'the provider was in trouble for 24 hours',
  times: 1,
  parked_at: '2026-05-04T12:30:00.000Z',
  changed_at: '2026-05-04T12:30:00.000Z',
  position: '0000000000001042',
  by: null,
};
const exampleEvent = {
  ...eventExample,
  stream: 'parked-purchase',
  type: 'WorkParked',
  by: { user: 'system:process-managers' },
  data: {
    entity: example.entity,
    transaction_id: example.transaction_id,
    step: example.step,
    cause: example.cause,
    event_id: '5f1c',
    times: 1,
  },
};
const retriedExample = {
  ...example,
  state: 'retried',
  by: { user: 'sue', client: 'desk', roles: ['support'] },
  reason: 'the provider is up again',
};

const params = {
  parkedId:
    'The id of the parked work, or of its gift (or the shortcode), transaction, refund or dispute. Where several match: the one that waits for a person.',
};
const body = record({ reason: reasonProperty });

export function parkedRoutes({ engines: { events }, models, gifts }: OpsDeps): OpsRoute[] {
  const deps = { events, parked: models.parked, gifts: models.gifts };

  const exists = async ({ params: { parkedId = '' } }: EarlyCall): Promise<unknown> => findParked(deps, parkedId);

  const decided = async (call: Call, sight: Sight, decide: typeof retryParked): Promise<OpsAnswer> => {
    const reason = (call.body['reason'] as string).trim();
    const outcome = await decide(deps, call.params['parkedId'] ?? '', supportContextOf(call, gifts.now()), reason);
    const position = outcome.own?.position;
    if (position !== undefined) await waitUntilProjected(position, [models.parked]);
    return {
      body: { data: await parkedWithEvents(events, outcome, sight) },
      replayed: outcome.replayed,
      // Answers with reasons must not be stored. Where nothing was appended the answer is stored, since a repeat would
      // decide again.
      unstored: outcome.own !== undefined,
      shown: 1,
      position,
    };
  };

  return [
    {
      method: 'GET',
      path: '/ops/parked',
      operation: 'listParked',
      summary: 'Parked work',
      description:
        'Work that process managers gave up and that waits for a person, in order of its last event. `next` is the `after` of the following page.',
      tag: 'Parked work',
      roles: STAFF,
      reads: ['parked'],
      query: querySchema({
        state: choiceSchema([...STATES, 'all'], 'Only work in this state.', { default: 'parked' }),
        process: choiceSchema(PARKED_NAMES, 'Only work of this process manager.'),
        after: textSchema('Only work after this position.', { maxLength: 32 }),
        ...limitParameter,
      }),
      answers: [jsonAnswer('The parked work.', nextPageSchema(parkedSchema), { data: [example], next: null })],
      async handle({ query }) {
        const { state, process, after } = query as {
          readonly state: string;
          readonly process?: string;
          readonly after?: string;
        };
        const limit = query['limit'] as number;
        await refuseOtherPositions(events, after);
        const where: Record<string, Condition> = {
          ...(process === undefined ? {} : { name: process }),
          ...(state === 'all' ? {} : { state }),
          ...(after === undefined ? {} : { changed: { gt: after } }),
        };
        const found = await models.parked.find({ where, sort: [['changed', 1]], limit: limit + 1 });
        const page = found.slice(0, limit).map(({ id, body: document }) => parkedView({ id, document }));
        return {
          body: { data: page, next: found.length > limit ? (page.at(-1)?.position ?? null) : null },
          shown: page.length,
        };
      },
    },
    {
      method: 'GET',
      path: '/ops/parked/:parkedId',
      operation: 'getParked',
      summary: 'One piece of parked work',
      description: 'With its events: each time it was parked and why, who retried or discarded it and why.',
      tag: 'Parked work',
      roles: STAFF,
      params,
      answers: [
        dataAnswer('The work.', withEvents, { ...example, reason: null, settled: false, events: [exampleEvent] }),
      ],
      errors: ['parked_work_not_found'],
      async handle(call, sight) {
        const found = await findParked(deps, call.params['parkedId'] ?? '');
        return { body: { data: await parkedWithEvents(events, found, sight) }, shown: 1 };
      },
    },
    {
      method: 'POST',
      path: '/ops/parked/:parkedId/retry',
      operation: 'retryParked',
      outward: true,
      summary: 'Retry parked work',
      description:
        'Hands it back to its process manager, which continues by the state of log and provider: no charge, notification or refund happens twice. If it fails again it is parked again, with the count in `times`. ' +
        'Retrying it again changes nothing. Discarded work may be retried, except a notification: `resend` sends another.',
      tag: 'Parked work',
      roles: ['support'],
      params,
      body,
      bodyExample: { reason: 'the provider is up again' },
      answers: [
        dataAnswer('It has been handed back.', withEvents, {
          ...retriedExample,
          settled: false,
          events: [exampleEvent],
        }),
      ],
      errors: ['parked_work_not_found', 'parked_work_ambiguous', 'work_discarded'],
      exists,
      handle: async (call, sight) => decided(call, sight, retryParked),
    },
    {
      method: 'POST',
      path: '/ops/parked/:parkedId/discard',
      operation: 'discardParked',
      summary: 'Discard parked work',
      description:
        'Removes it from the list for good: a person has done it, or decided against it. The log keeps it, with caller and reason. A notification is recorded as failed. A charge is recorded as declined: ' +
        'its gifts are cancelled. A refund or a dispute stays as it was.',
      tag: 'Parked work',
      roles: ['support'],
      params,
      body,
      bodyExample: { reason: 'notified by telephone' },
      answers: [
        dataAnswer('It is discarded.', withEvents, {
          ...retriedExample,
          state: 'discarded',
          settled: false,
          events: [exampleEvent],
        }),
      ],
      errors: ['parked_work_not_found', 'parked_work_ambiguous', 'work_retried'],
      exists,
      handle: async (call, sight) => decided(call, sight, discardParked),
    },
  ];
}
