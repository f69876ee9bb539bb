/** Routes that find persons and their gifts, and show what is stored about persons (docs/support.md#finding-people). */
import { findGifts, type FoundPerson, openPeople, type PersonRecord, SEARCH } from '../../ops/people/index.js';
import { giftExample } from '../gifts/schemas.js';
import {
  choiceSchema,
  countSchema,
  dataAnswer,
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
import { HttpError } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { requestedPerson } from './erasures.js';
import { type OpsRoute, STAFF } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';

const TEXT = textSchema();

/** Query parameters that searches for persons and for gifts share. */
const knownParameters = {
  phone_number: textSchema('A phone number; without a country code a British one.', { maxLength: 64 }),
  username: textSchema('The whole username.', { minLength: 1, maxLength: 256 }),
  charge: textSchema('The payment provider’s id of a charge.', { minLength: 1, maxLength: 256 }),
  message_id: textSchema('The message provider’s id of a message.', { minLength: 1, maxLength: 256 }),
} as const satisfies Record<string, Schema>;

/** @throws HttpError `schema` unless exactly one is given */
function oneOf<K extends string>(known: readonly K[], query: Readonly<Record<string, unknown>>): K {
  const [given, ...others] = known.filter((name) => query[name] !== undefined);
  if (given === undefined || others.length > 0)
    throw new HttpError('schema', { message: `give exactly one of ${known.join(', ')}` });
  return given;
}

const foundSchema = {
  title: 'FoundPerson',
  ...record(
    {
      person: textSchema('As in paths: a user’s id, or `phone:{phone_id}` of a number that no user holds.'),
      kind: choiceSchema(['user', 'number']),
      role: choiceSchema(['buyer', 'receiver'], 'Where it was found by a charge or a message.'),
      transaction_id: TEXT,
      gift_id: TEXT,
    } satisfies Record<keyof FoundPerson, Schema>,
    ['person', 'kind'],
  ),
};

const partSchema = record({
  part: TEXT,
  where: textSchema('Where it is kept.'),
  why: textSchema('What it is kept for.'),
  until: textSchema('How long it is kept.'),
  count: integerSchema(),
  records: listSchema({ type: 'object', additionalProperties: true }),
} satisfies Record<keyof PersonRecord['parts'][number] | 'count', Schema>);

const recordSchema = record({
  person: TEXT,
  erased_at: orNull(timeSchema()),
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
const receivedExample = {
  gift_id: giftExample.id,
  transaction_id: giftExample.transaction_id,
  at: '2026-05-04T12:30:00.000Z',
  as: 'receiver',
};
const foundGiftExample = {
  ...receivedExample,
  product_id: 'p1',
  value: 350,
  gift_status: 'sent',
  blocked: false,
  expiry_date: '2027-05-04',
  last_event: 'NotificationSent',
  last_event_at: '2026-05-04T12:30:01.000Z',
};

export function peopleRoutes({ engines: { events, store }, gifts: { subjects } }: OpsDeps): OpsRoute[] {
  const people = openPeople({ events, subjects });
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
    answers: [dataAnswer('What is kept.', recordSchema, example([receivedExample]))],
    errors: ['person_not_found'],
    async handle({ params: { personId = '' } }) {
      const { parts, ...person } = await people.record(requestedPerson(personId), store.records);
      const counted = parts.map(({ records, ...part }) => ({
        ...part,
        count: records.length,
        records: records.slice(0, most),
      }));
      return { body: { data: { ...person, parts: counted } }, shown: 1 };
    },
  });
  return [
    {
      method: 'GET',
      path: '/ops/people',
      operation: 'findPeople',
      summary: 'Find a person',
      description: `By exactly one of what is known of them. At most ${SEARCH.mostPeople} are answered.`,
      tag: 'People',
      roles: STAFF,
      allPersonal: true,
      unrecorded: SEARCH.peopleBy.filter((by) => by !== 'charge' && by !== 'message_id'),
      query: querySchema({
        ...knownParameters,
        name: textSchema('A part of a name.', { minLength: SEARCH.shortestName, maxLength: 256 }),
      }),
      answers: [
        jsonAnswer('Who was found.', record({ data: listSchema(foundSchema), has_more: flagSchema() }), {
          data: [{ person: 'u42', kind: 'user' }],
          has_more: false,
        }),
      ],
      errors: ['invalid_phone_number', 'schema'],
      async handle({ query }) {
        const by = oneOf(SEARCH.peopleBy, query);
        const { people: found, has_more } = await people.find(by, query[by] as string);
        const recorded = { by, found: found.map(({ person }) => person) };
        return { body: { data: found, has_more }, shown: found.length, recorded };
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

const foundGiftSchema = {
  title: 'FoundGift',
  ...record(
    {
      gift_id: TEXT,
      transaction_id: TEXT,
      at: textSchema('When it was bought, claimed or reassigned.', { format: 'date-time' }),
      as: choiceSchema(
        ['buyer', 'receiver', 'claimer', 'later receiver', 'former receiver'],
        'How it is the person’s. Absent in a search by a charge or a message.',
      ),
      product_id: TEXT,
      value: countSchema('Pence.'),
      gift_status: choiceSchema(['pending', 'sent', 'redeemed', 'cancelled']),
      blocked: flagSchema('Whether anything blocks it.'),
      expiry_date: textSchema('The last valid day, in UTC.', { format: 'date' }),
      last_event: textSchema('The type of the last event of the gift, its notification or its purchase.'),
      last_event_at: { ...TEXT, format: 'date-time' },
    } satisfies Record<keyof Awaited<ReturnType<typeof findGifts>>['gifts'][number], Schema>,
    [
      'gift_id',
      'transaction_id',
      'at',
      'product_id',
      'value',
      'gift_status',
      'blocked',
      'expiry_date',
      'last_event',
      'last_event_at',
    ],
  ),
};

export function foundGiftRoutes({ engines: { events }, gifts: { subjects }, models }: OpsDeps): OpsRoute[] {
  const deps = { events, subjects, models };
  return [
    {
      method: 'GET',
      path: '/ops/gifts',
      operation: 'findGifts',
      summary: 'Find gifts',
      description:
        'By exactly one of what a caller at the support desk knows, the latest first: what the person bought, got, claimed or had reassigned to them; the gifts of a charge; the gift of a message or a redemption.',
      tag: 'Support',
      roles: STAFF,
      allPersonal: true,
      reads: ['byUser'],
      unrecorded: ['phone_number', 'username'],
      query: querySchema({
        person: textSchema('As `GET /ops/people` names them.', { minLength: 1, maxLength: 256 }),
        ...knownParameters,
        transaction: textSchema('A transaction’s id.', { minLength: 1, maxLength: 64 }),
        redemption: textSchema('A redemption’s id, also of a reversed one.', { minLength: 1, maxLength: 64 }),
        ...limitParameter,
        after: textSchema('Only gifts after this place.', { pattern: SEARCH.giftsPosition, maxLength: 64 }),
      }),
      answers: [
        jsonAnswer('The gifts.', nextPageSchema(foundGiftSchema), {
          data: [foundGiftExample],
          next: null,
        }),
      ],
      errors: ['invalid_phone_number', 'person_not_found', 'schema'],
      async handle({ query }) {
        const by = oneOf(SEARCH.giftsBy, query);
        const text = query[by] as string;
        const search = by === 'person' ? { person: requestedPerson(text) } : { by, text };
        const { limit, after } = query as { readonly limit: number; readonly after?: string };
        const { gifts, next, people: found } = await findGifts(deps, search, { limit, after });
        // The access record names the persons found, or the one purchase that a charge or a message belongs to.
        const about = found.length > 0 ? { found } : { transactionId: gifts[0]?.transaction_id };
        return { body: { data: gifts, next }, shown: gifts.length, recorded: { by, ...about } };
      },
    },
  ];
}
