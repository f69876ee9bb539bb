/** Routes that find persons and show what is stored about them (docs/support.md#finding-people). */
import {
  findPeople,
  type FoundPerson,
  KNOWN,
  MAX_FOUND,
  type PersonRecord,
  personRecord,
  type RecordPart,
  shortest,
} from '../../ops/people/index.js';
import { dataSchema, listSchema, record } from '../representation/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { personAsked } from './erasures.js';
import type { OpsRoute } from './frame.js';

const TEXT: Schema = { type: 'string' };

/** Query parameters that searches for persons and for gifts share. */
export const knownParameters = {
  phone: { ...TEXT, maxLength: 64, description: 'A phone number; without a country code a British one.' },
  username: { ...TEXT, minLength: 1, maxLength: 256, description: 'The whole username.' },
  charge: { ...TEXT, minLength: 1, maxLength: 256, description: 'The payment provider’s id of a charge.' },
  message_id: { ...TEXT, minLength: 1, maxLength: 256, description: 'The message provider’s id of a message.' },
} as const satisfies Record<string, Schema>;

/** @throws HttpError `schema` unless exactly one is given */
export function oneOf<K extends string>(known: readonly K[], query: Readonly<Record<string, unknown>>): K {
  const [given, ...others] = known.filter((name) => query[name] !== undefined);
  if (given === undefined || others.length > 0)
    throw new HttpError('schema', { message: `give exactly one of ${known.join(', ')}` });
  return given;
}

const foundSchema = {
  title: 'FoundPerson',
  ...record(
    {
      person: {
        ...TEXT,
        description: 'As in paths: a user’s id, or `phone:{phone_id}` of a number that no user holds.',
      },
      kind: { type: 'string', enum: ['user', 'number'] },
      role: {
        type: 'string',
        enum: ['buyer', 'receiver'],
        description: 'Where it was found by a charge or a message.',
      },
      transaction_id: TEXT,
      gift_id: TEXT,
    } satisfies Record<keyof FoundPerson, Schema>,
    ['person', 'kind'],
  ),
};

const partSchema = record({
  part: TEXT,
  where: { ...TEXT, description: 'Where it is kept.' },
  why: { ...TEXT, description: 'What it is kept for.' },
  until: { ...TEXT, description: 'How long it is kept.' },
  count: { type: 'integer' },
  records: listSchema({ type: 'object', additionalProperties: true }),
} satisfies Record<keyof RecordPart | 'count', Schema>);

const recordSchema = record({
  person: TEXT,
  erased_at: { type: ['string', 'null'], format: 'date-time' },
  parts: listSchema(partSchema),
} satisfies Record<keyof PersonRecord, Schema>);

const SHOWN = 20;

const example = (records: object[]): object => ({
  person: 'u42',
  erased_at: null,
  parts: [
    {
      part: 'gifts',
      where: 'event log, read model of gifts',
      why: 'to redeem them, and to prove what was redeemed',
      until: 'for good, without the person’s name or number once erased',
      count: 1,
      records,
    },
  ],
});
const giftExample = {
  gift_id: '5f2c9d6a1b7e4c80d3a1',
  transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  at: '2026-05-04T12:30:00.000Z',
  as: 'receiver',
};

export function peopleRoutes({ engines: { events, store }, gifts: { subjects } }: OpsDeps): OpsRoute[] {
  const deps = { events, subjects, records: store.records };
  const personRoute = (
    below: string,
    most: number,
    description: Pick<OpsRoute, 'operation' | 'summary' | 'description' | 'daily'>,
  ): OpsRoute => ({
    method: 'GET',
    path: `/ops/people/:personId${below}`,
    ...description,
    tag: 'People',
    roles: ['support'],
    allPersonal: true,
    params: { personId: 'A user’s id, or `phone:{phone_id}` of a number.' },
    answers: [
      {
        status: 200,
        description: 'What is kept.',
        schema: dataSchema(recordSchema),
        example: { data: example([giftExample]) },
      },
    ],
    errors: ['person_not_found'],
    async handle({ params: { personId = '' } }) {
      const { parts, ...person } = await personRecord(deps, personAsked(personId));
      const counted = parts.map(({ records, ...part }) => ({
        ...part,
        count: records.length,
        records: records.slice(0, most),
      }));
      return { status: 200, body: { data: { ...person, parts: counted } }, shown: 1 };
    },
  });
  return [
    {
      method: 'GET',
      path: '/ops/people',
      operation: 'findPeople',
      summary: 'Find a person',
      description: `By exactly one of what is known of them. At most ${MAX_FOUND} are answered.`,
      tag: 'People',
      roles: ['support'],
      allPersonal: true,
      unrecorded: KNOWN.filter((known) => known !== 'charge' && known !== 'message_id'),
      query: {
        type: 'object',
        properties: {
          ...knownParameters,
          name: { ...TEXT, minLength: shortest('name'), maxLength: 256, description: 'A part of a name.' },
        },
      },
      answers: [
        {
          status: 200,
          description: 'Who was found.',
          schema: record({ data: listSchema(foundSchema), has_more: { type: 'boolean' } }),
          example: { data: [{ person: 'u42', kind: 'user' }], has_more: false },
        },
      ],
      errors: ['invalid_phone_number', 'schema'],
      async handle({ query }) {
        const known = oneOf(KNOWN, query);
        const { people, has_more } = await findPeople(deps, known, query[known] as string);
        const recorded = { by: known, found: people.map(({ person }) => person) };
        return { status: 200, body: { data: people, has_more }, shown: people.length, recorded };
      },
    },
    personRoute('', SHOWN, {
      operation: 'getPerson',
      summary: 'What is kept of a person',
      description: `Each part with where, why and how long it is kept, how many records it has, and the first ${SHOWN} of them.`,
    }),
    personRoute('/export', Number.POSITIVE_INFINITY, {
      operation: 'exportPerson',
      daily: 'person-exports',
      summary: 'Everything that is kept of a person',
      description: 'As `GET /ops/people/{id}`, with all records: to be handed to the person (GDPR art. 15).',
    }),
  ];
}
