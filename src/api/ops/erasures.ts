/** Routes for the erasure of persons (docs/personal-data.md#erasure). */
import type { CommandContext } from '../../commands/transact.js';
import { type Person, personOf } from '../../domain/erasure.js';
import { Refusal } from '../../domain/refusal.js';
import { ID_PATTERN } from '../../import/schemas.js';
import { type Erasures, ErasureWaitsError } from '../../ops/people/index.js';
import {
  choiceSchema,
  dataAnswer,
  entity,
  flagSchema,
  listSchema,
  orNull,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import type { Call, Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { type OpsAnswer, type OpsRoute, reasonProperty, supportContextOf, STAFF } from './frame.js';

type ErasureView = Awaited<ReturnType<Erasures['erase']>>['view'];
type ErasureRequestView = Awaited<ReturnType<Erasures['request']>>['view'];

const TIME = timeSchema();

const erasureSchema = entity('Erasure', {
  id: textSchema(),
  person: textSchema('As in the path.'),
  erased_at: timeSchema('When nothing was left in the log, the read models and the key store.'),
  complete_at: timeSchema('When the last backup of the key store that could hold the keys has ended its life.'),
  already: flagSchema('The person had been erased before.'),
  unread: listSchema(
    textSchema(),
    'Names, as their streams, that were altered in the key store: counters, stored answers and claims of messages that hold them were not found, and end within 48 hours.',
  ),
} satisfies Record<keyof ErasureView, Schema>);

const example: ErasureView = {
  id: 'q7Jc0m3bQ1yT5uWnE8rXzA',
  person: 'u42',
  erased_at: '2026-05-04T12:30:00.000Z',
  complete_at: '2026-06-03T12:30:00.000Z',
  already: false,
  unread: [],
};

const NUMBER = /^phone:[\w-]{22}$/;
const USER = new RegExp(ID_PATTERN);

/** @throws Refusal `person_not_found` for a malformed id */
export function requestedPerson(id: string): Person {
  const person = personOf(id);
  if (!(person.kind === 'number' ? NUMBER : USER).test(id)) throw new Refusal('person_not_found');
  return person;
}

const requestSchema = entity('ErasureRequest', {
  id: textSchema(),
  person: textSchema('As in the path.'),
  status: choiceSchema(
    ['requested', 'started', 'withdrawn', 'erased'],
    'Once it has started it can not be withdrawn; the service finishes it.',
  ),
  reason: textSchema(),
  requested_by: orNull(textSchema('Who requested it: a user, or `cli:` and a system user.')),
  requested_at: TIME,
  due_at: orNull(timeSchema('When it is carried out, unless it is withdrawn or approved before.')),
  erased_at: orNull(timeSchema()),
} satisfies Record<keyof ErasureRequestView, Schema>);

const requestExample: ErasureRequestView = {
  id: 'q7Jc0m3bQ1yT5uWnE8rXzA',
  person: 'u42',
  status: 'requested',
  reason: 'asked for it by letter of 2 May',
  requested_by: 'sue',
  requested_at: '2026-05-04T12:30:00.000Z',
  due_at: '2026-05-07T12:30:00.000Z',
  erased_at: null,
};

const withReason = {
  tag: 'People',
  roles: ['support'],
  params: { personId: 'A user’s id, or `phone:{phone_id}` of a number.' },
  body: record({ reason: reasonProperty }),
  bodyExample: { reason: 'asked for it by letter of 2 May' },
} as const satisfies Partial<OpsRoute>;

const PATH = '/ops/people/:personId/erasure';

export function erasureRoutes({ gifts, erasures, erasureDelayMs }: OpsDeps): OpsRoute[] {
  const commandIn = (call: Call): readonly [Person, CommandContext, string] => [
    requestedPerson(call.params['personId'] ?? ''),
    supportContextOf(call, gifts.now()),
    (call.body['reason'] as string).trim(),
  ];
  return [
    {
      ...withReason,
      method: 'POST',
      path: PATH,
      operation: 'requestErasure',
      summary: 'Request the erasure of a person',
      description:
        'It waits for the approval of another user of support, or for ERASURE_DELAY, and can be withdrawn until then. A person who has been erased is answered with 200. ' +
        'Staff and users of merchants are refused until an import has retired them.',
      daily: 'erasures',
      answers: [
        dataAnswer('Requested, now or before.', requestSchema, requestExample, { status: 202 }),
        dataAnswer('Erased before.', requestSchema, {
          ...requestExample,
          status: 'erased',
          erased_at: example.erased_at,
        }),
      ],
      errors: ['person_not_found', 'number_of_user', 'erasure_of_staff', 'another_user_required'],
      async handle(call) {
        const [person, context, reason] = commandIn(call);
        const requested = await erasures.request(person, context, { reason, delayMs: erasureDelayMs });
        return answer(requested, requested.view.erased_at === null ? 202 : 200);
      },
    },
    {
      ...withReason,
      method: 'POST',
      path: `${PATH}/approve`,
      operation: 'approveErasure',
      summary: 'Carry out the requested erasure of a person',
      description:
        'By another user of support than the one who requested it. Destroys what opens the personal data of a user, or of a number that is no user’s, then everything derived from it; it can not be undone. Takes some seconds. An erasure that was interrupted is finished by the same request; ' +
        'while money of the person is not settled it answers 409, says what it waits for, and has started: they can no longer log in.',
      daily: 'erasures',
      answers: [dataAnswer('Erased.', erasureSchema, example)],
      errors: [
        'erasure_not_found',
        'person_not_found',
        'number_of_user',
        'erasure_of_staff',
        'another_user_required',
        'erasure_waits',
      ],
      async handle(call) {
        return answer(await erasures.approve(...commandIn(call)).catch(throwWaits));
      },
    },
    {
      ...withReason,
      method: 'POST',
      path: `${PATH}/withdraw`,
      operation: 'withdrawErasure',
      summary: 'Withdraw the requested erasure of a person',
      description: 'By any user of support, until it has started.',
      bodyExample: { reason: 'the letter was not theirs' },
      answers: [dataAnswer('Withdrawn.', requestSchema, { ...requestExample, status: 'withdrawn' })],
      errors: ['person_not_found', 'erasure_not_found', 'erasure_started'],
      async handle(call) {
        return answer(await erasures.withdraw(...commandIn(call)));
      },
    },
  ];
}

export function openErasureRoutes({ erasures }: Pick<OpsDeps, 'erasures'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/erasures',
      operation: 'listErasures',
      summary: 'Erasures that are requested or in progress',
      description: 'All of them, the one that is due first at the beginning.',
      tag: 'People',
      roles: STAFF,
      answers: [dataAnswer('The erasures.', listSchema(requestSchema), [requestExample])],
      async handle() {
        const open = await erasures.unfinished();
        return { body: { data: open }, shown: open.length };
      },
    },
  ];
}

function answer(
  { view, replayed, position }: Awaited<ReturnType<Erasures['erase' | 'request']>>,
  status = 200,
): OpsAnswer {
  return { status, body: { data: view }, replayed, shown: 1, position };
}

function throwWaits(error: unknown): never {
  if (error instanceof ErasureWaitsError)
    throw new HttpError('erasure_waits', {
      message: `${error.message}.`,
      more: { waits_for: error.waitsFor },
    });
  throw error;
}
