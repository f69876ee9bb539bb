/** Rebuilds, rollbacks and aborts: requested here, carried out by processes with the role `projector`. */
import type { StartedOperation } from '../../commands/recordAccess.js';
import { timeoutSignal } from '../../lib/world.js';
import { recordedWork } from '../../ops/readmodels/orders.js';
import { pause } from '../../lib/async/pause.js';
import { type Requested, maintenance } from '../../runtime/readmodels/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import { rebuildShown } from '../../ops/status/readModelStatus.js';
import type { RebuildStatus } from '../../ops/status/status.js';
import { dataAnswer, dataSchema, listSchema, record, textSchema } from '../pipeline/schemas.js';
import type { Call } from '../pipeline/route.js';
import { alteredProperty, type OpsAnswer, type OpsRoute, reasonProperty } from './frame.js';
import { rebuildExample, rebuildSchema, TASKS } from './projectionSchemas.js';
import { placed, type ProjectionRoutesOptions, refusalsAsErrors, taskAnswer } from './projectionTasks.js';

/** How long an answer waits for the end of an aborted rebuild, ms. */
const ABORT_WAIT_MS = 5_000;
const POLL_MS = 50;
const reasonBody = { body: record({ reason: reasonProperty }) };
const rebuildBody = { body: record({ altered: alteredProperty, reason: reasonProperty }, ['reason']) };
const requested = { ...rebuildExample, holder: null, events: null, total: null, per_second: null, seconds_left: null };
const answer = {
  description: 'The requested rebuild; null: it is over, or not yet asked for.',
  schema: dataSchema({ oneOf: [rebuildSchema, { type: 'null' }] }),
  example: { data: requested },
};
const listed = record({
  name: textSchema(),
  rebuild: {
    oneOf: [rebuildSchema, { type: 'null' }],
    description: 'Null: the rebuild is over, or not yet asked for.',
  },
});
const made =
  'a process with the role `projector` makes from the whole log, more slowly while requests are answered. Once caught up, it replaces the build in use, which serves and stays up to date until then.';

const held =
  'The log is first held against what was signed over it, which takes some 20 s for a million events: one that was altered is refused. Where this takes longer than 5 s, the answer is 202 with null, and `GET /ops/projections/{name}/rebuild` shows what became of it.';
/** Name under which a task rebuilds all projections. */
const ALL = 'all';

export function rebuildRoutes(options: ProjectionRoutesOptions): OpsRoute[] {
  const { of, exists, asking, orders, store, params } = options;

  /** The state of a rebuild without its progress, which only the projection's status has. */
  async function rebuildNow(name: string): Promise<RebuildStatus | null> {
    const rebuild = (await maintenance.rebuildOf(store, name))?.value;
    return rebuild === undefined ? null : rebuildShown(rebuild, { progress: undefined, holder: null });
  }

  /** Requests rebuilds. @throws HttpError */
  async function request(
    { body: { altered } }: Call,
    projection: string,
    names: readonly string[],
    requested: Requested,
    start: () => Promise<StartedOperation>,
  ): Promise<void> {
    const operation = await start();
    const what = { names, uncheckedLog: altered === true };
    await placed(options, { kind: 'rebuild', projection, requested }, async () => what, operation);
  }

  /** Waits a short time for the end of an aborted rebuild. */
  async function ended(name: string, target: number): Promise<void> {
    const late = timeoutSignal(ABORT_WAIT_MS);
    for (; !late.aborted; await pause(POLL_MS, late)) {
      const rebuild = (await maintenance.rebuildOf(store, name))?.value;
      // The leading process drops a build that it has taken over.
      if (rebuild?.target !== target || rebuild.state === 'leaving') return;
    }
  }

  const answered = async (name: string, status: number): Promise<OpsAnswer> => ({
    status,
    body: { data: await rebuildNow(name) },
    shown: 1,
  });

  const shared = { tag: 'Projections', roles: ['support'] } as const;
  const one = {
    ...shared,
    params,
    exists,
    errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
  } satisfies Partial<OpsRoute>;

  return [
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/rebuild',
      operation: 'rebuildProjections',
      summary: 'Build all read models anew, one after the other',
      description: `Asks for a new build of each, which ${made} Where one of them can't be rebuilt now, none is started. ${held} \`GET /ops/projections\` shows the progress.`,
      ...rebuildBody,
      bodyExample: { reason: 'after the restored backup' },
      answers: [
        dataAnswer('The requested rebuilds.', listSchema(listed), [{ name: 'gifts', rebuild: requested }], {
          status: 202,
        }),
      ],
      errors: ['projection_busy', 'projection_refused'],
      async handle(call, _sight, start) {
        const names = PROJECTIONS.map(({ name }) => name);
        await request(call, ALL, names, asking(call), start);
        const data = await Promise.all(names.map(async (name) => ({ name, rebuild: await rebuildNow(name) })));
        return { status: 202, body: { data }, shown: data.length };
      },
    },
    {
      ...one,
      method: 'POST',
      path: '/ops/projections/:name/rebuild',
      operation: 'rebuildProjection',
      summary: 'Build a read model anew beside the one in use',
      description: `Asks for a new build, which ${made} An interrupted build continues. ${held} \`GET /ops/projections/{name}\` shows the progress.`,
      ...rebuildBody,
      bodyExample: { reason: 'redemptions are missing' },
      answers: [{ status: 202, ...answer }],
      async handle(call, _sight, start) {
        const {
          projection: { name },
          requested: asker,
        } = of(call);
        await request(call, name, [name], asker, start);
        return answered(name, 202);
      },
    },
    {
      ...one,
      method: 'GET',
      path: '/ops/projections/:name/rebuild',
      operation: 'getRebuildRequest',
      summary: 'The last request of a rebuild',
      description:
        'Also one for all read models. `running`: the log is held against what was signed. `failed`: it was refused, and nothing is built. `done`: the rebuild was asked for, and the status of the read model shows it.',
      watched: true,
      answers: [{ status: 200, description: 'What became of it.', ...TASKS.rebuild }],
      errors: ['projection_not_found', 'task_not_found'],
      async handle(call) {
        const { name } = of(call).projection;
        const both = await Promise.all([ALL, name].map(async (one) => maintenance.last(store.records, 'rebuild', one)));
        const [last] = both.filter((order) => order !== undefined).toSorted((a, b) => (a.at < b.at ? 1 : -1));
        const failure = (await maintenance.rebuildOf(store, name))?.value.failure;
        return taskAnswer(last && (failure === undefined ? last : { ...last, state: 'failed', failure }));
      },
    },
    {
      ...one,
      method: 'POST',
      path: '/ops/projections/:name/abort',
      operation: 'abortRebuild',
      summary: 'End a rebuild and drop what it has built',
      ...reasonBody,
      bodyExample: { reason: 'ticket 4711' },
      answers: [{ status: 200, ...answer, example: { data: null } }],
      async handle(call, _sight, start) {
        const { name } = of(call).projection;
        return recorded(start, async () => {
          // A request that is repeated after a lost answer finds no rebuild, since it has ended already.
          if ((await maintenance.rebuildOf(store, name)) !== undefined) await ended(name, await orders.abort(name));
          return answered(name, 200);
        });
      },
    },
    {
      ...one,
      method: 'POST',
      path: '/ops/projections/:name/rollback',
      operation: 'rollBackProjection',
      summary: 'Go back to the build that was in use before the last rebuild',
      description:
        'The previous build is kept for a day. The leading projector brings it up to date, then puts it in use.',
      ...reasonBody,
      bodyExample: { reason: 'ticket 4711' },
      answers: [{ status: 202, ...answer, example: { data: { ...requested, kind: 'rollback', state: 'ready' } } }],
      async handle(call, _sight, start) {
        const { projection, requested: asker } = of(call);
        return recorded(start, async () => {
          await maintenance.rollBack(store, projection, asker);
          return answered(projection.name, 202);
        });
      },
    },
  ];
}

/** Records the caller and reason before the work, and its outcome afterwards. Turns refusals into HTTP errors. */
async function recorded(record: () => Promise<StartedOperation>, work: () => Promise<OpsAnswer>): Promise<OpsAnswer> {
  return refusalsAsErrors(async () => recordedWork(await record(), work, ({ shown }) => [shown, true]));
}
