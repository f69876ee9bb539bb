import { Command } from 'commander';
import { pause } from '../../lib/async/pause.js';
import { currentTime } from '../../lib/clock.js';
import { AlteredEventError, UnavailableError } from '../../ports/unavailable.js';
import {
  abortRebuild,
  type Asked,
  build,
  buildOf,
  buildText,
  LeaseLostError,
  previousBuildOf,
  type Projection,
  type Rebuild,
  rebuildOf,
  type RebuildProgress,
  requestRebuild,
  requestRollback,
  seizeBuildLease,
  waitWithStandby,
} from '../../runtime/readmodels/index.js';
import { considerate } from '../../runtime/coordination/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import { inTenths } from '../../ops/status/status.js';
import { commandLineCaller } from '../caller.js';
import { type OpenedStores, withStores } from '../engines.js';
import { reasonOf } from '../exports.js';
import { examples, jsonLine, printable } from '../output.js';
import { type Goal, progressBar } from '../progress.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { depsOf, failureOf, projectionOf, recorded } from './shared.js';
import { ALTERED_OPTION, type AlteredFlag, refuseUnlessSigned } from './signedLog.js';

/** Milliseconds between lines of progress, and between retries while an engine is unreachable. */
const LINE_MS = 1_000;
const MAX_OUTAGE_MS = 300_000;

interface RebuildFlags extends AlteredFlag {
  readonly all?: true;
  readonly abort?: true;
  readonly reason?: string;
  readonly json?: true;
}

export function rebuildCommand(terminal: Terminal): Command {
  return new Command('rebuild')
    .summary('build a read model anew beside the one in use, and swap it in')
    .description(
      `Builds a read model anew from the whole log, in a collection beside the one in use, which goes on serving and being kept up to date. Once the new one has
caught up, readers are swapped over at once. An engine that does not answer is waited for, and what was interrupted goes on from where it was when the command is
repeated. While requests are answered it goes slower. The previous build is kept for a day: gift projections rollback goes back to it.`,
    )
    .argument('[name]', `the read model: ${PROJECTIONS.map(({ name }) => name).join(', ')}`)
    .option('--all', 'all read models, one after the other')
    .option('--abort', 'end the rebuild that is under way, in whatever process, and drop what it has built')
    .option(...ALTERED_OPTION)
    .option('--reason <text>', 'why; kept with the rebuild, and in the log')
    .option('--json', 'one JSON object a line on standard output, about one a second')
    .addHelpText(
      'after',
      examples(
        'gift projections rebuild gifts',
        'gift projections rebuild --all --json',
        'gift projections rebuild gifts --abort',
      ),
    )
    .action(async (name: string | undefined, flags: RebuildFlags) => runRebuild(terminal, name, flags));
}

export function rollbackCommand(terminal: Terminal): Command {
  return new Command('rollback')
    .summary('go back to the build that was in use before the last rebuild')
    .description(
      'Brings the previous build of a read model up to date and swaps it in again. It is kept for a day after a rebuild.',
    )
    .argument('<name>', 'the read model')
    .option('--reason <text>', 'why; kept with it')
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', examples('gift projections rollback gifts --reason "the new build lacks redemptions"'))
    .action(async (name: string, flags: Omit<RebuildFlags, 'all' | 'abort'>) => runRollback(terminal, name, flags));
}

function asked(reason: string | undefined): Asked {
  const text = reasonOf(reason);
  return { by: commandLineCaller().user ?? 'cli', at: currentTime(), ...(text === null ? {} : { reason: text }) };
}

async function runRebuild(terminal: Terminal, name: string | undefined, flags: RebuildFlags): Promise<void> {
  if ((name === undefined) === (flags.all === undefined)) throw usageFailure('name one read model, or --all');
  if (flags.abort === true && name === undefined) throw usageFailure('--abort wants the name of one read model');
  const projections = name === undefined ? PROJECTIONS : [projectionOf(name)];
  const asker = asked(flags.reason);
  const json = flags.json === true;
  terminal.yieldProcessor?.();
  const abort = flags.abort === true;
  await withStores(terminal, async (opened) => {
    let held = abort;
    for (const projection of projections) {
      const altered = flags.altered === true ? { altered: true } : {};
      const what = { name: projection.name, ...altered, ...(abort ? { abort } : {}) };
      try {
        if (!held) await refuseUnlessSigned(terminal, opened, flags, asker.reason ?? null);
        held = true;
        await recorded(opened.events, 'gift projections rebuild', what, asker.reason ?? null, async () =>
          abort
            ? abortOne(terminal, opened, projection, json)
            : rebuildOne(terminal, opened, projection, { asker, json }),
        );
      } catch (error) {
        throw failureOf(error, projection.name, 'repeat the command, it goes on from where it was');
      }
    }
  });
}

interface Reporting {
  readonly asker: Asked;
  readonly json: boolean;
}

/** Rebuilds one read model. While an engine does not answer, the rebuild waits, then goes on from where it was. */
async function rebuildOne(
  terminal: Terminal,
  opened: OpenedStores,
  projection: Projection,
  reporting: Reporting,
): Promise<void> {
  const { name } = projection;
  const { signal, stderr } = terminal;
  const say = async (action: string, more: object): Promise<void> => {
    if (reporting.json) await writeLines(terminal.stdout, [jsonLine({ action, projection: name, ...more })]);
  };
  const startedAt = performance.now();
  let lostAt: number | undefined;
  let started: number | undefined;
  for (;;) {
    try {
      await attempt(terminal, opened, projection, {
        ...reporting,
        say,
        startedAt,
        started,
        onStarted: (target) => (started = target),
        onProgress: () => (lostAt = undefined),
      });
      return;
    } catch (error) {
      // Waiting does not bring an altered event back.
      if (error instanceof AlteredEventError) throw error;
      if (!(error instanceof UnavailableError || error instanceof LeaseLostError)) throw error;
      if (signal.aborted) throw stoppedBy(name);
      const now = performance.now();
      if (lostAt === undefined && !reporting.json)
        await writeLines(stderr, [
          `${printable(error.message)}: waiting for it; the rebuild of ${name} goes on from where it was`,
        ]);
      lostAt ??= now;
      if (now - lostAt > MAX_OUTAGE_MS) throw error;
      await say('waiting', { cause: error.message });
      await pause(LINE_MS, signal);
      if (signal.aborted) throw stoppedBy(name);
    }
  }
}

const stoppedBy = (name: string): CommandFailure =>
  interrupted(`interrupted: repeat the command, and the rebuild of ${name} goes on from where it was; --abort ends it`);

interface Attempt extends Reporting {
  readonly say: (action: string, more: object) => Promise<void>;
  /** Start of the first attempt, ms of a monotonic clock. */
  readonly startedAt: number;
  /** The number of the build that an earlier attempt started. */
  readonly started: number | undefined;
  readonly onStarted: (target: number) => void;
  readonly onProgress: () => void;
}

async function attempt(
  terminal: Terminal,
  opened: OpenedStores,
  projection: Projection,
  { asker, json, say, startedAt, started, onStarted, onProgress }: Attempt,
): Promise<void> {
  const { name } = projection;
  const { store } = opened;
  const { signal } = terminal;
  const deps = depsOf(opened);
  const bar = progressBar(terminal.stderr, { doing: `rebuilding ${name}`, unit: 'events' });
  let last: RebuildProgress | undefined;
  const report = (progress: RebuildProgress): void => {
    if (progress.position !== last?.position) onProgress();
    last = progress;
    bar(progress.events, goalOf(progress));
    void say('building', progressJson(progress));
  };
  const lease = await seizeBuildLease(deps, name, signal);
  if (lease === undefined) throw stoppedBy(name);
  try {
    const { record, resumed } = await startOrResume(started, store, projection, asker);
    const { target, from, state } = record;
    onStarted(target);
    if (state === 'building') {
      const outcome = await build(deps, projection, target, lease, {
        pace: considerate(store.records),
        signal,
        onProgress: report,
      });
      if (outcome === 'stopped') throw stoppedBy(name);
      if (outcome === 'aborted')
        throw new CommandFailure(`the rebuild of ${name} was aborted; what was in use still is`);
    }
    bar.clear();
    let saidAt = Number.NEGATIVE_INFINITY;
    const swapped = await waitWithStandby(deps, projection, signal, async () => {
      const now = performance.now();
      if (now - saidAt >= LINE_MS) {
        saidAt = now;
        await say('swapping', buildOf(target));
      }
      return (await rebuildOf(store, name))?.value.target !== target;
    });
    if (!swapped)
      throw interrupted(`interrupted: ${name} is built; the running projector swaps it in, or the same command again`);
    if ((await store.active(name)) !== target)
      throw new CommandFailure(`the rebuild of ${name} was aborted; what was in use still is`);
    const seconds = (performance.now() - startedAt) / 1_000;
    await say('done', {
      ...buildOf(target),
      previous: from === undefined ? null : buildOf(from),
      resumed,
      events: last?.events ?? null,
      seconds: inTenths(seconds),
    });
    if (!json) {
      const kept =
        from === undefined ? '' : `; ${buildText(from)} is kept for a day (gift projections rollback ${name})`;
      await writeLines(terminal.stdout, [
        `${name}: ${last === undefined ? 'what was built' : `${last.events.toLocaleString('en-GB')} events`} in ${seconds.toFixed(1)} s${resumed ? ', gone on with from before' : ''}; ${buildText(target)} is in use${kept}`,
      ]);
    }
  } finally {
    bar.clear();
    await lease.release();
  }
}

/** A rebuild that ended while an engine was unreachable is not started again. */
async function startOrResume(
  started: number | undefined,
  store: OpenedStores['store'],
  projection: Projection,
  asker: Asked,
): Promise<{ readonly record: Pick<Rebuild, 'target' | 'from' | 'state'>; readonly resumed: boolean }> {
  const { name } = projection;
  if (started !== undefined && (await rebuildOf(store, name))?.value.target !== started)
    return {
      record: { target: started, from: (await previousBuildOf(store, name))?.number, state: 'swapping' },
      resumed: true,
    };
  const { record, resumed } = await requestRebuild(store, projection, asker, true);
  return { record: record.value, resumed };
}

/** The share of the log, as the goal: the number of events of a projection's types is known only at the end. */
export const goalOf = ({ share }: RebuildProgress): Goal => (share === undefined ? undefined : { share });

export function progressJson({ events, total, perSecond, secondsLeft, position }: RebuildProgress): object {
  return {
    events,
    total: total ?? null,
    per_second: Math.round(perSecond),
    seconds_left: secondsLeft === undefined ? null : inTenths(secondsLeft),
    position: position ?? null,
  };
}

async function abortOne(
  terminal: Terminal,
  opened: OpenedStores,
  projection: Projection,
  json: boolean,
): Promise<void> {
  const { name } = projection;
  const deps = depsOf(opened);
  const outcome = await abortRebuild(deps, name, terminal.signal);
  const gone =
    outcome === 'over' ||
    (await waitWithStandby(
      deps,
      projection,
      terminal.signal,
      async () => (await rebuildOf(opened.store, name)) === undefined,
    ));
  if (!gone)
    throw interrupted(`interrupted: the rebuild of ${name} is being aborted; repeat the command to see it through`);
  await writeLines(terminal.stdout, [
    json
      ? jsonLine({ action: 'aborted', projection: name })
      : `${name}: the rebuild was aborted, and what it had built is dropped; what was in use still is`,
  ]);
}

async function runRollback(
  terminal: Terminal,
  name: string,
  { reason, json }: Omit<RebuildFlags, 'all' | 'abort'>,
): Promise<void> {
  const projection = projectionOf(name);
  const asker = asked(reason);
  await withStores(terminal, async (opened) => {
    const { store } = opened;
    try {
      await recorded(opened.events, 'gift projections rollback', { name }, asker.reason ?? null, async () => {
        const from = await store.active(name);
        const target = await requestRollback(store, projection, asker);
        const done = await waitWithStandby(
          depsOf(opened),
          projection,
          terminal.signal,
          async () => (await store.active(name)) === target && (await rebuildOf(store, name)) === undefined,
        );
        if (!done)
          throw interrupted(
            `interrupted: the running projector goes back to ${buildText(target)}, or the same command again`,
          );
        await writeLines(terminal.stdout, [
          json === true
            ? jsonLine({
                action: 'done',
                projection: name,
                ...buildOf(target),
                previous: from === undefined ? null : buildOf(from),
              })
            : `${name}: ${buildText(target)} is in use again`,
        ]);
      });
    } catch (error) {
      throw failureOf(error, name, 'repeat the command');
    }
  });
}
