/** Rebuilds, rollbacks and aborts: requested here, carried out by processes with the role `projector`. */
import type { StartedOperation } from '../../commands/recordAccess.js';
import { AlteredLogRefusedError, refuseAlteredLog, type SignedLog } from '../../ops/readmodels/refuseAlteredLog.js';
import { recordedWork } from '../../ops/readmodels/recordedWork.js';
import type { ReadStore } from '../../ports/readStore.js';
import {
  abortRebuild,
  checkRebuild,
  type Projection,
  rebuildOf,
  RebuildRefusedError,
  requestRebuild,
  requestRollback,
  seizeBuildLease,
  type Task,
  TaskRunningError,
  type Tasks,
} from '../../runtime/readmodels/index.js';
import type { Lease } from '../../runtime/coordination/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import { rebuildShown } from '../../ops/status/readModelStatus.js';
import type { RebuildStatus } from '../../ops/status/status.js';
import { dataSchema, listSchema, record } from '../representation/schemas.js';
import { faultOf, HttpError } from '../pipeline/errors.js';
import type { Call } from '../pipeline/route.js';
import type { Named } from './deps.js';
import { alteredProperty, type OpsAnswer, type OpsRoute, reasonProperty } from './frame.js';
import { rebuildExample, rebuildSchema, rebuildTaskSchema, refusedRebuildExample } from './projectionSchemas.js';
import { busy, explains, TASK_WAIT_MS } from './projectionTasks.js';

export interface RebuildRoutesOptions {
  readonly of: (call: Call) => Named;
  readonly exists: NonNullable<OpsRoute['exists']>;
  readonly asking: (call: Call) => Omit<Named, 'projection'>;
  readonly tasks: Tasks;
  readonly signedLog: SignedLog;
  readonly store: ReadStore;
  readonly params: Readonly<Record<string, string>>;
}

const never = new AbortController().signal;
const reasonBody = {
  body: { type: 'object', additionalProperties: false, properties: { reason: reasonProperty } },
  bodyOptional: true,
} as const;
const rebuildBody = {
  body: {
    type: 'object',
    additionalProperties: false,
    properties: { altered: alteredProperty, reason: reasonProperty },
  },
  bodyOptional: true,
} as const;
const asked = { ...rebuildExample, holder: null, events: null, total: null, per_second: null, seconds_left: null };
const answer = {
  description: 'The requested rebuild; null: it is over, or not yet asked for.',
  schema: dataSchema({ oneOf: [rebuildSchema, { type: 'null' }] }),
  example: { data: asked },
};
const listed = record({
  name: { type: 'string' },
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

export function rebuildRoutes({
  of,
  exists,
  asking,
  tasks,
  signedLog,
  store,
  params,
}: RebuildRoutesOptions): OpsRoute[] {
  /** The state of a rebuild without its progress, which only the projection's status has. */
  async function rebuildNow(name: string): Promise<RebuildStatus | null> {
    const rebuild = (await rebuildOf(store, name))?.value;
    return rebuild === undefined ? null : rebuildShown(rebuild, { progress: undefined, holder: null });
  }

  /**
   * Compares the log with what was signed over it, then requests the rebuild. Both run in a background task, since the
   * comparison may outlast the HTTP request; the call waits `TASK_WAIT_MS` for it at most.
   * @throws AlteredLogRefusedError, RebuildRefusedError, HttpError
   */
  async function askInBackground(
    { body: { altered, reason } }: Call,
    projection: string,
    { by }: Named['asked'],
    operation: StartedOperation,
    ask: () => Promise<number>,
  ): Promise<void> {
    const ended = async (error: Error): Promise<never> => {
      await operation.end(0, null, false);
      throw error;
    };
    if (altered === true && reason === undefined) return ended(faultOf('reason', 'is required with altered'));
    let refusal: unknown;
    const work = async (signal: AbortSignal): Promise<null> => {
      try {
        if (altered !== true) await refuseAlteredLog(signedLog, { signal });
        await recordedWork(operation, ask, (asked) => asked);
      } catch (error) {
        refusal = error;
        // Ends the access record also where no rebuild was requested.
        await operation.end(0, null, false);
        throw error;
      }
      return null;
    };
    const why = typeof reason === 'string' ? reason : null;
    const task = await tasks
      .start({ kind: 'rebuild', projection, by, reason: why }, work, {
        waitMs: TASK_WAIT_MS,
        explains,
      })
      .catch(async (error: Error) => (error instanceof TaskRunningError ? ended(busy(error.message)) : ended(error)));
    if (task.state === 'failed') throw refusal;
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
        {
          status: 202,
          description: 'The requested rebuilds.',
          schema: dataSchema(listSchema(listed)),
          example: { data: [{ name: 'gifts', rebuild: asked }] },
        },
      ],
      errors: ['projection_busy', 'projection_refused'],
      async handle(call, _sight, record) {
        const { deps, asked: asker } = asking(call);
        return refusalsAsErrors(async () => {
          await askInBackground(call, ALL, asker, await record(), async () => {
            await withBuildLeases(deps, PROJECTIONS, async () => {
              for (const projection of PROJECTIONS) await checkRebuild(store, projection);
              for (const projection of PROJECTIONS) await requestRebuild(store, projection, asker, false);
            });
            return PROJECTIONS.length;
          });
          const data = await Promise.all(
            PROJECTIONS.map(async ({ name }) => ({ name, rebuild: await rebuildNow(name) })),
          );
          return { status: 202, body: { data }, shown: data.length };
        });
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
      async handle(call, _sight, record) {
        const { projection, deps, asked: asker } = of(call);
        return refusalsAsErrors(async () => {
          await askInBackground(call, projection.name, asker, await record(), async () => {
            await withBuildLeases(deps, [projection], async () => requestRebuild(store, projection, asker, false));
            return 1;
          });
          return answered(projection.name, 202);
        });
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
      answers: [
        {
          status: 200,
          description: 'What became of it.',
          schema: dataSchema(rebuildTaskSchema),
          example: { data: refusedRebuildExample },
        },
      ],
      errors: ['projection_not_found', 'task_not_found'],
      async handle(call) {
        const both = await Promise.all(
          [ALL, of(call).projection.name].map(async (name) => tasks.last('rebuild', name)),
        );
        const [last] = both
          .filter((task): task is Task => task !== undefined)
          .toSorted((a, b) => (a.at < b.at ? 1 : -1));
        if (last === undefined) throw new HttpError('task_not_found');
        return { status: 200, body: { data: last }, shown: 1 };
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
      async handle(call, _sight, record) {
        const { projection, deps } = of(call);
        return recorded(record, async () => {
          // A request that is repeated after a lost answer finds no rebuild, since it has ended already.
          if ((await rebuildOf(store, projection.name)) !== undefined) await abortRebuild(deps, projection.name, never);
          return answered(projection.name, 200);
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
      answers: [{ status: 202, ...answer, example: { data: { ...asked, kind: 'rollback', state: 'ready' } } }],
      async handle(call, _sight, record) {
        const { projection, asked: asker } = of(call);
        return recorded(record, async () => {
          await requestRollback(store, projection, asker);
          return answered(projection.name, 202);
        });
      },
    },
  ];
}

/** @throws RebuildRefusedError while another holder builds one of the projections */
async function withBuildLeases(
  deps: Named['deps'],
  projections: readonly Projection[],
  work: () => Promise<unknown>,
): Promise<void> {
  const seized = await Promise.allSettled(projections.map(async ({ name }) => seizeBuildLease(deps, name, never)));
  try {
    for (const one of seized) if (one.status === 'rejected') throw one.reason;
    await work();
  } finally {
    const had = seized.flatMap((one): Lease[] =>
      one.status === 'fulfilled' && one.value !== undefined ? [one.value] : [],
    );
    await Promise.all(had.map(async (lease) => lease.release()));
  }
}

/** Records the caller and reason before the work, and its outcome afterwards. Turns refusals into HTTP errors. */
async function recorded(record: () => Promise<StartedOperation>, work: () => Promise<OpsAnswer>): Promise<OpsAnswer> {
  return refusalsAsErrors(async () => recordedWork(await record(), work, ({ shown }) => shown));
}

async function refusalsAsErrors(work: () => Promise<OpsAnswer>): Promise<OpsAnswer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RebuildRefusedError)
      throw error.busy ? busy(error.message) : new HttpError('projection_refused', { message: error.message });
    if (error instanceof AlteredLogRefusedError) throw new HttpError('projection_refused', { message: error.message });
    throw error;
  }
}
