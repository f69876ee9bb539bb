import { discardParked, retryParked } from '../../commands/parkedWork.js';
import { PARKED_NAMES } from '../../domain/parked.js';
import { Refusal } from '../../domain/refusal.js';
import {
  decidePieces,
  doneBefore,
  finishDiscards,
  groupMembers,
  type PieceOutcome,
  waitingGroups,
} from '../../ops/parked/decideGroup.js';
import type { ParkedGroup } from '../../ops/parked/groups.js';
import { answerOf } from '../pipeline/errors.js';
import { waitUntilProjected } from '../pipeline/positions.js';
import type { Call, EarlyCall, Schema } from '../pipeline/route.js';
import {
  choiceSchema,
  countSchema,
  dataAnswer,
  entity,
  flagSchema,
  integerSchema,
  listSchema,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { handledItems } from './manyActions.js';
import { type OpsAnswer, type OpsRoute, reasonProperty, supportContextOf, STAFF } from './frame.js';

const ID = textSchema();
/** Pieces that one call decides on, by default and at most: an answer must not take minutes. */
const PIECES = { usual: 100, most: 500 };

const groupSchema = entity('ParkedGroup', {
  id: textSchema('The same for the same process manager, step and cause.'),
  process: choiceSchema(PARKED_NAMES, 'The process manager that gave the work up.'),
  step: textSchema('The step that failed.'),
  cause: textSchema('Why the example failed; others differ in ids, numbers and times.'),
  count: countSchema('How many pieces wait.', { minimum: 1 }),
  first_at: timeSchema('When the first of them was parked.'),
  last_at: timeSchema('When the last of them was parked.'),
  example: textSchema('The id of the last one.'),
} satisfies Record<keyof ParkedGroup, Schema>);

const reportSchema = entity('ParkedGroupReport', {
  group_id: ID,
  dry_run: flagSchema(),
  items: handledItems,
  left: countSchema('How many pieces of the group wait still: the same call goes on with them.'),
});

const groupExample: ParkedGroup = {
  id: '5d41c0ffee12',
  process: 'purchase',
  step: 'charge',
  cause: 'the provider was in trouble for 24 hours',
  count: 3,
  first_at: '2026-05-04T12:30:00.000Z',
  last_at: '2026-05-04T12:41:00.000Z',
  example: '3f0b8a1de29c4f7d5a6b90c1e2d3f4a5',
};
const reportExample = {
  group_id: groupExample.id,
  dry_run: false,
  items: [{ id: groupExample.example, outcome: 'done' }],
  left: 0,
};

const params = { groupId: 'The id of the group, as the list of groups has it.' };
const body = record(
  {
    reason: reasonProperty,
    dry_run: flagSchema('Shows what would be done, and does nothing.'),
    limit: integerSchema('Most pieces of this call.', { minimum: 1, maximum: PIECES.most, default: PIECES.usual }),
  },
  ['reason'],
);

export function parkedGroupRoutes({ engines: { events }, models, gifts }: OpsDeps): OpsRoute[] {
  const deps = { events, parked: models.parked, gifts: models.gifts };

  const exists = async ({ params: { groupId = '' } }: EarlyCall): Promise<void> => {
    if (!(await groupMembers(events, groupId)).known) throw new Refusal('parked_work_not_found');
  };

  async function decided(call: Call, decide: typeof retryParked): Promise<OpsAnswer> {
    const { groupId = '' } = call.params;
    const {
      reason,
      dry_run: dryRun = false,
      limit = PIECES.usual,
    } = call.body as {
      readonly reason: string;
      readonly dry_run?: boolean;
      readonly limit?: number;
    };
    const context = supportContextOf(call, gifts.now());
    if (decide === discardParked && !dryRun) await finishDiscards(deps, groupId, context, reason.trim());
    const [{ waiting }, before] = await Promise.all([groupMembers(events, groupId), doneBefore(events, context)]);
    // A repeated command takes up what it left, not what was parked since.
    const [first] = before;
    const open = first === undefined ? waiting : waiting.filter(({ document }) => document.changed < first.position);
    const chosen = open.slice(0, Math.max(0, limit - before.length));
    const now = dryRun ? [] : await decidePieces(deps, chosen, { decide, context, reason: reason.trim() });
    const outcomes = [...before, ...now];
    const position = outcomes.findLast((one) => one.position !== undefined)?.position;
    if (position !== undefined) await waitUntilProjected(position, [models.parked]);
    const refused = now.filter(({ outcome }) => outcome === 'refused').length;
    return {
      body: {
        data: {
          group_id: groupId,
          dry_run: dryRun,
          items: dryRun ? chosen.map(({ id }) => ({ id, outcome: 'done' })) : outcomes.map(shown),
          left: waiting.length - now.length + refused,
        },
      },
      replayed: before.length > 0 && now.length === 0,
      shown: dryRun ? chosen.length : outcomes.length,
      position,
    };
  }

  const changing = {
    tag: 'Parked work',
    roles: ['support'],
    params,
    body,
    exists,
    withoutReason: true,
  } as const;
  const answers = [dataAnswer('The report.', reportSchema, reportExample)];
  return [
    {
      method: 'GET',
      path: '/ops/parked/groups',
      operation: 'listParkedGroups',
      summary: 'Parked work in groups of one cause',
      description:
        'What waits for a person, by process manager, step and cause, the largest group first: how many, since when, until when, and an example.',
      tag: 'Parked work',
      roles: STAFF,
      answers: [dataAnswer('All groups.', listSchema(groupSchema), [groupExample])],
      async handle() {
        const found = await waitingGroups(events);
        return { body: { data: found }, shown: found.length };
      },
    },
    {
      ...changing,
      method: 'POST',
      path: '/ops/parked/groups/:groupId/retry',
      operation: 'retryParkedGroup',
      outward: true,
      summary: 'Retry all parked work of a group',
      description:
        'Hands each piece back to its process manager, as for a single one. Each is done once: a repeated call goes on with what is left.',
      bodyExample: { reason: 'the provider is up again' },
      answers,
      errors: ['parked_work_not_found'],
      handle: async (call) => decided(call, retryParked),
    },
    {
      ...changing,
      method: 'POST',
      path: '/ops/parked/groups/:groupId/discard',
      operation: 'discardParkedGroup',
      summary: 'Discard all parked work of a group',
      description:
        'Removes each piece from the list for good, as for a single one. Each is done once: a repeated call goes on with what is left.',
      bodyExample: { reason: 'all receivers were notified by telephone' },
      answers,
      errors: ['parked_work_not_found'],
      handle: async (call) => decided(call, discardParked),
    },
  ];
}

const shown = ({ id, outcome, refusal }: PieceOutcome): object => ({
  id,
  outcome,
  why: refusal && answerOf(refusal).message,
});
