import { Refusal } from '../../domain/refusal.js';
import { doMany, type HandledItem, type ManyAction, type ManyItem, onceEach } from '../../ops/gifts/many.js';
import type { DailyLimit } from '../limits/dailyLimits.js';
import { userOf } from '../pipeline/commandContext.js';
import { answerOf, HttpError } from '../pipeline/errors.js';
import type { Call } from '../pipeline/route.js';
import { choiceSchema, dataAnswer, entity, flagSchema, listSchema, record, textSchema } from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, reasonProperty, supportContextOf } from './frame.js';
import { ACTION_PROPERTIES, ACTIONS, receiverIn } from './supportActions.js';

/** Items of one call at most: an answer must not take minutes. */
const MOST_ITEMS = 100;
/** How long a call waits for each refund, ms. */
const WAIT_MS = 1_000;

export const handledItems = listSchema(
  record(
    {
      id: textSchema(),
      outcome: choiceSchema(
        ['done', 'unchanged', 'refused'],
        '`done`: of a dry run, it would be; `unchanged`: nothing was left to do.',
      ),
      why: textSchema('Why it was refused.'),
    },
    ['id', 'outcome'],
  ),
);

const reportSchema = entity('ActionReport', {
  action: textSchema(),
  dry_run: flagSchema(),
  items: handledItems,
});

const { user_id, phone_number, expiry_date, ticket, voided } = ACTION_PROPERTIES;

interface Kind {
  /** Fields of the body that the action takes, and those it needs. */
  readonly takes: readonly string[];
  readonly needs?: readonly string[] | undefined;
  readonly daily?: DailyLimit | undefined;
  readonly action: (body: Call['body']) => ManyAction;
}

/** The actions for one gift, and refunds. The receivers of a reassignment are in the items. */
const KINDS: Readonly<Record<ManyAction['name'], Kind>> = {
  ...(Object.fromEntries(
    ACTIONS.map(({ name, properties, required, daily, action }): [string, Kind] => [
      name,
      { takes: Object.keys(properties), needs: required, daily, action },
    ]),
  ) as Record<(typeof ACTIONS)[number]['name'], Kind>),
  reassign: { takes: [], action: () => ({ name: 'reassign' }) },
  refund: { takes: ['voided'], action: (body) => ({ name: 'refund', voided: body['voided'] === true }) },
};
const NAMES = Object.keys(KINDS) as ManyAction['name'][];
const COMMON = ['items', 'reason', 'dry_run'];

export function manyActionRoutes({ engines: { events }, models, gifts, hash, takeDaily }: OpsDeps): OpsRoute[] {
  const deps = { events, gifts: models.gifts, accounts: models.accounts, subjects: gifts.subjects, hash };

  return [
    {
      method: 'POST',
      path: '/ops/actions',
      operation: 'actOnMany',
      outward: true,
      summary: 'Carry out one action for many gifts or purchases',
      description:
        `For up to ${MOST_ITEMS} gifts, or purchases to refund. Each is done once for one action, arguments and reason: the same call, repeated, goes on with what is left. ` +
        'A refusal stops nothing else, and is in the report. Each event has caller and reason, as of a single action.',
      tag: 'Support',
      roles: ['support'],
      withoutReason: true,
      unrecorded: ['items', 'ticket'],
      body: record(
        {
          action: choiceSchema(NAMES),
          items: {
            type: 'array',
            minItems: 1,
            maxItems: MOST_ITEMS,
            items: record(
              {
                id: textSchema("The gift's id or shortcode; of `refund`, the transaction's id.", {
                  minLength: 1,
                  maxLength: 64,
                }),
                user_id,
                phone_number,
              },
              ['id'],
            ),
            description: 'Of `reassign` each item has one receiver: `user_id` or `phone_number`.',
          },
          expiry_date: { ...expiry_date, description: 'Of `extend`, which needs it: the new last valid day.' },
          ticket: { ...ticket, description: 'Of `block` and `unblock`: the ticket of this block.' },
          voided: { ...voided, description: 'Of `replace` and `refund`: issued codes have been made worthless.' },
          dry_run: flagSchema('Says what would be done, and does nothing.'),
          reason: reasonProperty,
        },
        ['action', 'items', 'reason'],
      ),
      bodyExample: {
        action: 'block',
        items: [{ id: '5f2c9d6a1b7e4c80d3a1' }, { id: '0c4f1a9e7b2d8c6f5a30' }],
        reason: 'reported as stolen',
      },
      answers: [
        dataAnswer('The report, an item for each id, in their order.', reportSchema, {
          action: 'block',
          dry_run: false,
          items: [
            { id: '5f2c9d6a1b7e4c80d3a1', outcome: 'done' },
            { id: '0c4f1a9e7b2d8c6f5a30', outcome: 'refused', why: 'gift not found' },
          ],
        } satisfies { action: string; dry_run: boolean; items: readonly HandledItem[] }),
      ],
      async handle(call) {
        const {
          action: name,
          reason,
          dry_run: dryRun = false,
        } = call.body as {
          readonly action: ManyAction['name'];
          readonly reason: string;
          readonly dry_run?: boolean;
        };
        const { action, daily } = kindOf(name, call.body);
        const items = itemsIn(call.body, name, (text) => gifts.shortcodes.giftIdOf(text) ?? text);
        const handled: HandledItem[] = [];
        await doMany(
          deps,
          items,
          { action: action(call.body), reason: reason.trim(), dryRun },
          {
            context: supportContextOf(call, gifts.now()),
            waitMs: WAIT_MS,
            ...(daily === undefined ? {} : { before: async () => takeDaily(daily, userOf(call).id) }),
            whyRefused: (error) =>
              error instanceof Refusal || error instanceof HttpError ? answerOf(error).message : undefined,
            onHandled: (index, one) => void (handled[index] = one),
          },
        );
        return {
          body: { data: { action: name, dry_run: dryRun, items: handled } },
          shown: handled.length,
          recorded: { ids: items.map(({ id }) => id) },
        };
      },
    },
  ];
}

function kindOf(name: ManyAction['name'], body: Call['body']): Kind {
  const kind = KINDS[name];
  const other = Object.keys(body).find((field) => ![...COMMON, 'action', ...kind.takes].includes(field));
  if (other !== undefined) throw new HttpError('schema', { message: `${name} takes no ${other}` });
  const missing = kind.needs?.find((field) => body[field] === undefined);
  if (missing !== undefined) throw new HttpError('schema', { message: `${name} wants ${missing}` });
  return kind;
}

/** @throws HttpError where an item of a reassignment, and of no other action, lacks its one receiver */
function itemsIn(body: Call['body'], name: ManyAction['name'], giftId: (text: string) => string): readonly ManyItem[] {
  const given = body['items'] as readonly (Readonly<Record<string, string>> & { readonly id: string })[];
  const { items, twice } = onceEach(
    given.map((item): ManyItem => {
      if (name === 'reassign') return { id: giftId(item.id), receiver: receiverIn(item) };
      if (item['user_id'] !== undefined || item['phone_number'] !== undefined)
        throw new HttpError('schema', { message: `an item of ${name} has an id only` });
      return { id: name === 'refund' ? item.id : giftId(item.id) };
    }),
  );
  if (twice !== undefined) throw new HttpError('schema', { message: `${twice} is named twice, with two receivers` });
  return items;
}
