/** docs/decisions.md#erasure */
import { type Person, personOf } from '../../domain/erasure.js';
import { Refusal } from '../../domain/refusal.js';
import { ID_PATTERN } from '../../import/schemas.js';
import { ErasureWaitsError } from '../../ops/people/erasure/endPerson.js';
import { erasePerson } from '../../ops/people/erasure/erasePerson.js';
import { erasureView, type ErasureView } from '../../ops/people/erasure/erasureView.js';
import { dataSchema, entity, listSchema, record } from '../representation/schemas.js';
import { contextOf } from '../gifts/deps.js';
import { HttpError } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, reasonProperty } from './frame.js';

const TIME: Schema = { type: 'string', format: 'date-time' };

const erasureSchema = entity('Erasure', {
  id: { type: 'string' },
  person: { type: 'string', description: 'As in the path.' },
  erased_at: { ...TIME, description: 'When nothing was left in the log, the read models and the key store.' },
  complete_at: {
    ...TIME,
    description: 'When the last backup of the key store that could hold the keys has ended its life.',
  },
  already: { type: 'boolean', description: 'The person had been erased before.' },
  unread: {
    ...listSchema({ type: 'string' }),
    description:
      'Names, as their streams, that were altered in the key store: counters, stored answers and claims of messages that hold them were not found, and end within 48 hours.',
  },
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
export function personAsked(id: string): Person {
  const person = personOf(id);
  if (!(person.kind === 'number' ? NUMBER : USER).test(id)) throw new Refusal('person_not_found');
  return person;
}

export function erasureRoutes({ gifts, erasure }: OpsDeps): OpsRoute[] {
  return [
    {
      method: 'POST',
      path: '/ops/people/:personId/erasure',
      operation: 'erasePerson',
      summary: 'Erase a person',
      description:
        'Destroys what opens the personal data of a user, or of a number that is no user’s, then everything derived from it. Takes some seconds. An erasure that was interrupted is finished by the same request; ' +
        'while money of the person is not settled it answers 409, says what it waits for, and has started: they can no longer log in.',
      tag: 'People',
      roles: ['support'],
      params: { personId: 'A user’s id, or `phone:{phone_id}` of a number.' },
      body: record({ reason: reasonProperty }),
      bodyExample: { reason: 'asked for it by letter of 2 May' },
      answers: [{ status: 200, description: 'Erased.', schema: dataSchema(erasureSchema), example: { data: example } }],
      errors: ['person_not_found', 'number_of_user', 'erasure_waits'],
      async handle(call) {
        const person = personAsked(call.params['personId'] ?? '');
        const reason = (call.body['reason'] as string).trim();
        const outcome = await erasePerson(erasure, person, contextOf(call, gifts.now()), reason).catch(inWords);
        return {
          status: 200,
          body: { data: erasureView(outcome) },
          replayed: outcome.already,
          shown: 1,
          position: outcome.position,
        };
      },
    },
  ];
}

function inWords(error: unknown): never {
  if (error instanceof ErasureWaitsError)
    throw new HttpError('erasure_waits', {
      message: `${error.message}.`,
      headers: { 'Retry-After': '60' },
      more: { waits_for: error.waitsFor },
    });
  throw error;
}
